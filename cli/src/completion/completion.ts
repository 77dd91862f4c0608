import type { Argument, Command, Option } from 'commander';

/**
 * A kind of candidate, read from the orchestrator or from local profiles: the plural of a noun, except that `sessions`
 * means terminal sessions.
 */
export type Source = string;

export interface Candidate {
  value: string;
  /** Description; may be empty. */
  about: string;
}

export interface Completion {
  /** The part of the word before the value to complete, such as `a,b,` in a list or `--flag=`. */
  before: string;
  /** The part of the value typed so far. */
  begins: string;
  /** Candidates that are known without a request. */
  fixed: readonly Candidate[];
  /** Kind of live candidate; null if there is none. */
  source: Source | null;
  /** Values that the typed list already contains and that the shell does not suggest. */
  named: readonly string[];
  /** Whether the shell completes file names. */
  files: boolean;
}

/** Candidate kinds by argument name, for names that are not the singular or plural of a noun. */
const byWord: Readonly<Record<string, Source>> = {
  window: 'windows',
  windows: 'windows',
  session: 'sessions',
  sessions: 'sessions',
  operator: 'operators',
  operators: 'operators',
};

/** Candidate kinds by noun, for arguments named `name`, `names`, `ids`, or `words`. */
const byNoun: Readonly<Record<string, Source>> = {
  agents: 'agents',
  tags: 'agents',
  modules: 'modules',
  assignments: 'assignments',
  secrets: 'secrets',
  channels: 'channels',
  profile: 'profiles',
  operator: 'operators',
  sessions: 'sign-in sessions',
  'enrollment-tokens': 'tokens',
};
const byOption: Readonly<Record<string, Source>> = {
  '--agent': 'agents',
  '--module': 'modules',
  '--profile': 'profiles',
  '--assignment': 'assignments',
  '--plan': 'operations',
  '--plan-run': 'runs',
};
/** Commands whose first argument is the name of a new object. */
const making = new Set(['create', 'add', 'init']);

const isFile = (word: string): boolean => /^(files?|path|paths|out)$/.test(word);

/** Returns the choices in a help text, such as `only this kind: apply or plan` or `in a list: in_sync, drifted`. */
export function choicesIn(description: string): string[] {
  const [, list] = /(?:^|: )([a-z][a-z_]*(?:(?:, or |, | or )[a-z][a-z_]*)+)/.exec(description) ?? [];
  return list?.split(/, or |, | or /) ?? [];
}

const valueName = (option: Option): string => (/[<[]([^>\].]+)/.exec(option.flags)?.[1] ?? '').toLowerCase();

const toCandidates = (values: readonly string[]): Candidate[] => values.map((value) => ({ value, about: '' }));

const firstLine = (text: string): string => text.split(/[\n;:]/)[0]?.trim() ?? '';

function completeLastItem(
  word: string,
  fill: Pick<Completion, 'fixed' | 'source' | 'files'>,
  used: readonly string[] = [],
): Completion {
  const at = fill.source === null ? 0 : word.lastIndexOf(',') + 1;
  const named = [...used, ...word.slice(0, at).split(',')].flatMap((part) => part.split(',')).filter((part) => part);
  return { before: word.slice(0, at), begins: word.slice(at), named, ...fill };
}

function valueOfOption(option: Option, word: string): Completion {
  const choices = option.argChoices ?? choicesIn(option.description);
  const files = isFile(valueName(option)) || /-file$/.test(option.long ?? '');
  return completeLastItem(word, { fixed: toCandidates(choices), source: byOption[option.long ?? ''] ?? null, files });
}

const rootOf = (command: Command): Command => (command.parent === null ? command : rootOf(command.parent));

function valueOfArgument(argument: Argument, command: Command, word: string, used: readonly string[]): Completion {
  const name = argument.name().toLowerCase();
  const noun = command.parent?.parent ? command.parent.name() : command.name();
  const general = /^(name|names|ids?|words)$/.test(name) && !making.has(command.name());
  const nouns = rootOf(command).commands.map((each) => each.name());
  const source =
    byWord[name] ??
    nouns.find((noun) => noun === name || noun === `${name}s`) ??
    (general ? (byNoun[noun] ?? null) : null);
  const choices = argument.argChoices ?? (source === null ? choicesIn(argument.description) : []);
  return completeLastItem(word, { fixed: toCandidates(choices), source, files: isFile(name) }, used);
}

const nothing: Completion = { before: '', begins: '', fixed: [], source: null, named: [], files: false };

/**
 * Returns the completion for the last word of a line.
 * @param program contains at least the subcommands of the typed noun
 * @param typed the words after `muster`; the last one is completed and may be empty
 */
export function completionOf(program: Command, typed: readonly string[]): Completion {
  // bash splits `--flag=value` into three words.
  const words = typed.filter((word, at) => !(word === '=' && typed[at - 1]?.startsWith('--')));
  const last = words.at(-1) ?? '';
  let command = program;
  let open: Option | null = null;
  let positional: string[] = [];
  let optionsOver = false;
  const known = () => [...command.options, ...(command === program ? [] : program.options)];
  const find = (flag: string) => known().find(({ long, short }) => long === flag || short === flag);
  for (const word of words.slice(0, -1)) {
    if (!optionsOver && word === '--') {
      [optionsOver, open] = [true, null];
      continue;
    }
    if (!optionsOver && word.startsWith('-') && word !== '-') {
      const option = find(word.split('=')[0] as string);
      open = option && (option.required || option.optional) && !word.includes('=') ? option : null;
      continue;
    }
    if (open !== null) {
      if (!open.variadic) open = null;
      continue;
    }
    const below = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (below) [command, positional] = [below, []];
    else if (command === program && word === 'help') continue;
    else if (command.commands.length > 0) return nothing;
    else positional.push(word);
  }
  if (open !== null && !(open.variadic && last.startsWith('-'))) return valueOfOption(open, last);
  if (!optionsOver && last.startsWith('-') && last !== '-') {
    const [flag = '', value] = last.split(/=(.*)/s);
    const option = value === undefined ? undefined : find(flag);
    if (option && value !== undefined) {
      const inner = valueOfOption(option, value);
      return { ...inner, before: `${flag}=${inner.before}` };
    }
    const flags = known()
      .filter(({ hidden }) => !hidden)
      .map(({ long, short, description }) => ({ value: long ?? short ?? '', about: firstLine(description) }));
    return { ...nothing, begins: last, fixed: [...flags, { value: '--help', about: 'show help' }] };
  }
  if (command.commands.length > 0) {
    const verbs = command.createHelp().visibleCommands(command);
    const fixed = verbs.map((each) => ({ value: each.name(), about: firstLine(each.description()) }));
    return { ...nothing, begins: last, fixed };
  }
  const args = command.registeredArguments;
  const argument = args[positional.length] ?? (args.at(-1)?.variadic ? args.at(-1) : undefined);
  return argument ? valueOfArgument(argument, command, last, positional) : nothing;
}
