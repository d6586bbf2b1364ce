// Every fact of the contract as text, by its path. A missing option is `-`, a list joins its members with a comma, and a path
// that does not exist is `?`, which no fixture expects. Facts are walked as they arrive, not named one by one: a fact that
// arrives under another name than the contract's is not found.

const NO_FACT = '?';
const RECTANGLE = ['x', 'y', 'width', 'height'];

/// Options are there as undefined, and so is what does not exist: these are the options.
const OPTIONS = new Set([
  'approval', 'element', 'focus', 'page', 'opener', 'port', 'nestedIn', 'scriptLength', 'target', 'windowDigest',
  'elementToken', 'elementDigest', 'tier', 'path', 'frame', 'start', 'plain', 'text', 'wouldRequire', 'fresh',
]);

function camel(name) {
  return name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
}

function leaf(value) {
  if (value === undefined || value === null) return '-';
  if (Array.isArray(value)) return value.map(leaf).join(',');
  if (typeof value !== 'object') return String(value);
  // Typed arrays are lists of numbers.
  if (ArrayBuffer.isView(value)) return Array.from(value).join(',');
  if ('width' in value) return RECTANGLE.map((side) => value[side]).join(',');
  if ('tag' in value) return value.tag;
  return NO_FACT;
}

function walk(value, names) {
  if (names.length === 0) return leaf(value);
  const [first, ...rest] = names;
  if (value === undefined || value === null) return '-';
  if (Array.isArray(value)) {
    const tiers = value.filter((row) => row.tier === first);
    if (tiers.length > 0) return tiers.flatMap((row) => [...row.paths]).join(',');
    return value.map((row) => walk(row, names)).join(',');
  }
  if (typeof value !== 'object') return NO_FACT;
  if ('tag' in value) return value.tag === first ? walk(value.val, rest) : NO_FACT;
  const name = camel(first);
  if (!(name in value) && !OPTIONS.has(name)) return NO_FACT;
  return walk(value[name], rest);
}

export function factText(facts, path) {
  const names = path.split('.');
  // The content of a review's subject has a path without `subject`.
  if (facts.subject && !['head', 'admitted-rules', 'subject'].includes(names[0])) {
    return walk(facts.subject, names);
  }
  return walk(facts, names);
}
