/** Other words for nouns and their subcommands. Help and completion show only the first. */

/** Nouns by alias. Excludes the singular forms of plural nouns. Includes names from earlier releases. */
const nouns: Readonly<Record<string, string>> = {
  'enrolment-token': 'enrollment-tokens',
  'enrolment-tokens': 'enrollment-tokens',
  issues: 'out-of-sync',
  'maintenance-window': 'maintenance',
  'maintenance-windows': 'maintenance',
  operators: 'operator',
  profiles: 'profile',
  reconcile: 'out-of-sync',
  states: 'state',
  terminals: 'terminal',
  token: 'enrollment-tokens',
  tokens: 'enrollment-tokens',
  window: 'maintenance',
  windows: 'maintenance',
};

/** Nouns by their names in earlier releases. Scripts look up output schemas by these names. */
export const formerNouns: Readonly<Record<string, string>> = {
  'enrolment-tokens': 'enrollment-tokens',
  reconcile: 'out-of-sync',
  windows: 'maintenance',
};

/** Aliases for subcommands. If a noun has a subcommand with the name of an alias, the subcommand takes precedence. */
export const otherVerbs: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  show: ['get'],
  get: ['show'],
  create: ['add', 'new'],
  add: ['create', 'new'],
  set: ['create', 'add'],
  upload: ['create', 'add'],
  update: ['edit'],
  remove: ['delete', 'rm'],
  revoke: ['remove', 'delete', 'rm'],
  enroll: ['enrol'],
};

/** Commands to suggest for a subcommand that was typed without its noun. */
export const withoutNoun: Readonly<Record<string, string>> = {
  approve: 'agents approve',
  check: 'modules check',
  enrol: 'agents enroll',
  enroll: 'agents enroll',
  list: 'agents list',
  ls: 'agents list',
  open: 'terminal open',
  reject: 'agents reject',
  replay: 'terminal replay',
  retry: 'runs retry',
  upload: 'modules upload',
  validate: 'modules validate',
  whoami: 'operator whoami',
};

/**
 * Subcommands of `muster agents` that `muster agent` accepts too. All other words after `muster agent` belong to the
 * program that runs an agent. Must match the lists in cli/bin/muster and packaging/executable/roles.ts.
 */
export const agentVerbs: ReadonlySet<string> = new Set([
  ...['approve', 'attributes', 'delete', 'enrol', 'enroll', 'get', 'list', 'ls', 'reject', 'remove', 'rm', 'show'],
  ...['tag', 'untag', 'values'],
]);

/** Default subcommands by noun. The default for all other nouns is `list`. */
const defaultVerbs: Readonly<Record<string, string>> = {
  retention: 'show',
  selectors: 'match',
  settings: 'show',
  state: 'show',
};
/** Nouns with a single subcommand. The name of the subcommand may be omitted before its arguments. */
const single: ReadonlySet<string> = new Set(['selectors', 'settings', 'state']);
/** Nouns whose subcommand `show` may be omitted before the name of an agent. */
export const shown: ReadonlySet<string> = new Set(['metrics']);

/** Global options with a value. */
const withValue: ReadonlySet<string> = new Set(['--url', '--profile', '--key-file', '--fingerprint']);

/**
 * Returns the index of the first word at or after `start` that is neither an option nor an option's value; -1 if there
 * is none.
 */
export function operandAt(words: readonly string[], start = 0): number {
  for (let at = start; at < words.length; at++) {
    const word = words[at] as string;
    if (word === '--') return -1;
    if (withValue.has(word)) at++;
    else if (!word.startsWith('-') || word === '-') return at;
  }
  return -1;
}

/**
 * Replaces an alias with its noun.
 * @param isNoun reports whether the program has a noun
 */
export function withNoun(words: readonly string[], isNoun: (word: string) => boolean): string[] {
  const at = operandAt(words);
  const word = words[at] ?? '';
  const plural = isNoun(`${word}s`) ? `${word}s` : undefined;
  const noun = Object.hasOwn(nouns, word) ? nouns[word] : plural;
  if (noun === undefined) return [...words];
  const next = words[operandAt(words, at + 1)];
  if (word === 'agent' && !agentVerbs.has(next ?? '')) return [...words];
  return words.with(at, noun);
}

interface Subcommands {
  name(): string;
  readonly commands: readonly { name(): string; aliases(): readonly string[] }[];
}

/**
 * Inserts the default subcommand after a noun that has none: `muster agents` lists agents.
 * @param nounAt index of the noun
 * @param noun the noun with its subcommands
 * @param nearest returns the most similar known word; null if none is similar
 */
export function withVerb(
  words: readonly string[],
  nounAt: number,
  noun: Subcommands,
  nearest: (typed: string, known: readonly string[]) => string | null,
): string[] {
  const rest = words.slice(nounAt + 1);
  const verb = defaultVerbs[noun.name()] ?? 'list';
  const isVerb = (word: string) => noun.commands.some((each) => each.name() === word || each.aliases().includes(word));
  if (!noun.commands.some((each) => each.name() === verb) || rest.some(isVerb) || words.some(isHelp)) return [...words];
  const next = rest[0];
  if (next !== undefined && !next.startsWith('-') && !single.has(noun.name())) {
    const names = noun.commands.map((each) => each.name());
    // A word that is similar to a subcommand is treated as a typo.
    const isAgent = shown.has(noun.name()) && nearest(next, names) === null;
    return isAgent ? words.toSpliced(nounAt + 1, 0, 'show') : [...words];
  }
  return words.toSpliced(nounAt + 1, 0, verb);
}

const isHelp = (word: string): boolean => word === '-h' || word === '--help';
