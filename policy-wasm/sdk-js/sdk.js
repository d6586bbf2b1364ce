// What the author of a policy in JavaScript writes against. It builds verdicts and reads settings, and knows the manifest,
// so that a rule or code that is not in it ends the call at once: a fault, and a fault is a refusal. Facts arrive as
// wit/policy.wit has them, with names in camelCase; a variant is {tag, val}, an enum its name, a missing option undefined, u64 a
// BigInt. There is no clock, no file, no random number and no memory between calls.

/// The end of a judgment that does not allow.
class Refusal {
  constructor(rules, code, way) {
    this.rules = rules;
    this.code = code;
    this.way = way;
  }
}

/// Settings that a schema cannot describe and this policy does not take. Throw it in `check`; `pointer` is a JSON pointer.
export class Misfit {
  constructor(pointer, code) {
    this.pointer = pointer;
    this.code = code;
  }
}

/// The rules of one verdict while it is being reached.
class Trail {
  #manifest;
  #otherwise;

  constructor(manifest, otherwise) {
    this.#manifest = manifest;
    this.#otherwise = otherwise;
    this.held = [];
    this.obligations = [];
  }

  /// Notes that a rule applies; refuses with `code` unless it holds.
  require(rule, holds, code) {
    this.#note(rule, holds, code, this.#otherwise.plain);
  }

  /// As `require`, but asks for a person's approval, or closes the session of a review.
  requireOrElse(rule, holds, code) {
    this.#note(rule, holds, code, this.#otherwise.other);
  }

  /// Sets a condition on an allow or a release. It counts only when the judgment ends in one.
  oblige(kind, arg = '') {
    this.obligations.push({ kind, arg });
  }

  #note(rule, holds, code, way) {
    const index = this.#manifest.rules.findIndex(({ id }) => id === rule);
    const isCode = this.#manifest.denials.some((denial) => denial.code === code);
    if (index < 0 || !isCode || typeof holds !== 'boolean') {
      throw new Error('a rule or code that the manifest does not have, or a condition that is no boolean');
    }
    if (!holds) throw new Refusal([index], code, way);
    this.held.push(index);
  }
}

const ADMIT = { pass: 'allow', plain: 'deny', other: 'require-approval' };
const REVIEW = { pass: 'release', plain: 'withhold', other: 'quarantine' };

function reach(manifest, words, rules) {
  const trail = new Trail(manifest, words);
  try {
    const answer = rules(trail);
    // A verdict of one's own, for whoever does not want the trail.
    if (answer !== undefined) return answer;
    return { outcome: { tag: words.pass, val: trail.obligations }, rules: trail.held };
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    return { outcome: { tag: thrown.way, val: thrown.code }, rules: thrown.rules };
  }
}

const ACTIONS = ['element', 'point', 'key', 'text', 'launch', 'observe', 'other'];

/// The action, unless it is newer than the contract: that is refused.
export function known(action) {
  if (action.tag === 'other' || !ACTIONS.includes(action.tag)) throw new Refusal([], 'action_unknown', ADMIT.plain);
  return action;
}

/// The hooks of a policy, for `export const hooks`. `policy` has a function for each hook of the manifest:
/// `admitDispatch`, `admitCdp`, `reviewResult`, each called with (trail, settings, facts); and, if it wants, `check(settings)`.
export function policy(manifest, policy) {
  const names = { admitDispatch: 'admit-dispatch', admitCdp: 'admit-cdp', reviewResult: 'review-result' };
  for (const [name, hook] of Object.entries(names)) {
    if (manifest.hooks.includes(hook) !== (typeof policy[name] === 'function')) {
      throw new Error(`the manifest and the policy differ about ${hook}`);
    }
  }
  const read = (prepared) => JSON.parse(new TextDecoder().decode(prepared));
  const admit = (rules) => (prepared, facts) => {
    const { outcome, rules: named } = reach(manifest, ADMIT, (trail) => rules(trail, read(prepared), facts));
    return { decision: outcome, rules: named };
  };
  const absent = () => {
    throw new Error('a hook that the manifest does not have');
  };
  return {
    prepare(text) {
      try {
        const settings = JSON.parse(text);
        policy.check?.(settings);
        return new TextEncoder().encode(JSON.stringify(settings));
      } catch (thrown) {
        // The error of the contract is a list; anything else that is thrown ends the instance.
        if (thrown instanceof Misfit) throw [{ pointer: thrown.pointer, code: thrown.code }];
        throw thrown;
      }
    },
    admitDispatch: policy.admitDispatch ? admit(policy.admitDispatch) : absent,
    admitCdp: policy.admitCdp ? admit(policy.admitCdp) : absent,
    reviewResult(prepared, facts) {
      if (!policy.reviewResult) return absent();
      const rules = (trail) => policy.reviewResult(trail, read(prepared), facts);
      const { outcome, rules: named } = reach(manifest, REVIEW, rules);
      return { disposition: outcome, rules: named };
    },
  };
}
