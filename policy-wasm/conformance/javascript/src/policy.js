// The reference policy of the conformance fixtures, in JavaScript: it does what the settings of a case say. README.md one
// folder up says what that is.

import { Misfit, policy } from '../maka/sdk-js/sdk.js';
import manifest from '../manifest.js';
import { factText } from './text.js';

const DECISIONS = ['allow', 'deny', 'require-approval', 'release', 'withhold', 'quarantine'];
const PASSING = { decision: 'allow', disposition: 'release' };

function recurse(depth) {
  return recurse(depth + 1) + depth;
}

function happen(fault) {
  if (fault === 'trap') throw new Error('as the settings say');
  if (fault === 'loop') for (;;);
  if (fault === 'memory') {
    const kept = [];
    for (;;) kept.push(new Uint8Array(1 << 20));
  }
  if (fault === 'recursion') recurse(0);
}

function judge(trail, settings, facts) {
  if (facts.head.method === 'observe') return undefined;
  if (settings.fault) happen(settings.fault);
  if (settings.answer) {
    const { decision, code = '', rules = [], obligations = [] } = settings.answer;
    const passes = decision === PASSING.decision || decision === PASSING.disposition;
    const conditions = obligations.map(([kind, arg]) => ({ kind, arg }));
    return { outcome: { tag: decision, val: passes ? conditions : code }, rules };
  }
  if (settings.fact) {
    const { path, equals } = settings.fact;
    trail.require('fact.equal', factText(facts, path) === equals, 'fact_differs');
  }
  return undefined;
}

export const hooks = policy(manifest, {
  check(settings) {
    if (settings.answer && !DECISIONS.includes(settings.answer.decision)) {
      throw new Misfit('/answer/decision', 'not_a_decision');
    }
  },
  admitDispatch: judge,
  admitCdp: judge,
  reviewResult: judge,
});
