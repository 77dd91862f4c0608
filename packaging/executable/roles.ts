import { agentVerbs } from '../../cli/src/aliases.ts';

/** Program for each first word, and whether the program receives that word. Must match the table in cli/bin/muster. */
const roles: Readonly<Record<string, { program: 'orchestrator' | 'agent'; keepsWord: boolean }>> = {
  orchestrator: { program: 'orchestrator', keepsWord: false },
  agent: { program: 'agent', keepsWord: false },
  migrate: { program: 'orchestrator', keepsWord: true },
  export: { program: 'orchestrator', keepsWord: true },
  import: { program: 'orchestrator', keepsWord: true },
  backup: { program: 'orchestrator', keepsWord: true },
  restore: { program: 'orchestrator', keepsWord: true },
};

/** First words that start a separate program. All other words are commands of the `muster` command line. */
export const launchedWords: readonly string[] = Object.keys(roles);

/**
 * Returns the program for a command line, and its arguments.
 * @param words the arguments of `muster`
 */
export function programFor(words: readonly string[]): { program: 'orchestrator' | 'agent' | 'cli'; words: string[] } {
  const [first = '', ...rest] = words;
  const isForOperators = first === 'agent' && agentVerbs.has(rest[0] ?? '');
  const role = Object.hasOwn(roles, first) && !isForOperators ? roles[first] : undefined;
  if (role === undefined) return { program: 'cli', words: [...words] };
  return { program: role.program, words: role.keepsWord ? [...words] : rest };
}
