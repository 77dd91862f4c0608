import { executable } from '@muster/protocol/executable';
import { Command, CommanderError, Help, Option } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { operandAt, otherVerbs, shown, withNoun, withoutNoun, withVerb } from '../aliases.ts';
import type { Context } from '../context/context.ts';
import type { Act } from '../context/verb.ts';
import { capital, commandsFirst, inBrief, pipedWidth, wrapProse } from './help-text.ts';
import { isNoun, launched, nouns } from './nouns.ts';
import type { printError as PrintError } from './run.ts';
import type { GlobalOptions, Surroundings } from './surroundings.ts';

interface ProgramOptions {
  version: string;
  /** Sets a function as the action of a command. */
  act: Act;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
  /** Width of help output; null if the output is not a terminal. */
  width: number | null;
  /** The typed noun. If it is a known noun, other nouns are not registered, not even for suggestions. */
  noun?: string | undefined;
}

/** Returns the words of a command: `muster agents list`. */
const wordsOf = (command: Command): string =>
  command.parent === null ? command.name() : `${wordsOf(command.parent)} ${command.name()}`;

/** Creates the program with only the nouns that this call needs. Their subcommands are loaded later. */
function createProgram(options: ProgramOptions): Command {
  const { version, act, stdout, stderr, width, noun } = options;
  const program = new Command('muster');
  program
    .description('Muster keeps fleets of real machines in the state you declare.')
    .version(version, '-V, --version', 'Print the version; with -v also the build')
    .helpOption('-h, --help', 'Show help')
    .helpCommand(false)
    .showSuggestionAfterError(true)
    .configureHelp({
      helpWidth: width ?? pipedWidth,
      formatHelp(command, helper) {
        const help = Help.prototype.formatHelp.call(helper, command, helper);
        return command.parent === null ? commandsFirst(help) : help;
      },
      // Omits the choices, which do not fit on one line.
      optionDescription: ({ description, defaultValue, required, optional }) =>
        defaultValue !== undefined && (required || optional)
          ? `${description} (default: ${String(defaultValue)})`
          : description,
      // Omits aliases.
      commandUsage: (command) => `${wordsOf(command)} ${command.usage()}`,
      subcommandDescription: (command) => inBrief(command.description()),
      argumentDescription: ({ description }) => capital(description),
      // The arguments of a noun are known only after its code is loaded.
      subcommandTerm: (command) =>
        command.parent?.parent === null
          ? command.name()
          : `${command.name()} ${command.usage().replace(/\[options\] ?/, '')}`.trim(),
    })
    // Prints nothing here, because `runProgram` prints errors.
    .configureOutput({
      writeOut: (text) => stdout(wrapProse(text, width ?? pipedWidth)),
      writeErr: (text) => stderr(wrapProse(text, width ?? pipedWidth)),
      outputError: () => {},
    })
    .exitOverride()
    .addOption(new Option('--json', 'Print data and errors as JSON (MUSTER_JSON)').helpGroup('Output:'))
    .addOption(new Option('-v, --verbose', 'Show all details and error codes (MUSTER_VERBOSE)').helpGroup('Output:'))
    .addOption(new Option('--quiet', 'Print no notes and progress (MUSTER_QUIET)').helpGroup('Output:'))
    .addOption(new Option('--no-color', 'Use no colors (MUSTER_NO_COLOR, NO_COLOR)').helpGroup('Output:'))
    .addOption(new Option('--url <url>', 'Connect to this orchestrator (MUSTER_URL)').helpGroup('Connection:'))
    .addOption(new Option('--profile <name>', 'Use a named orchestrator (MUSTER_PROFILE)').helpGroup('Connection:'))
    .addOption(
      new Option('--key-file <file>', 'Sign in with this operator key (MUSTER_KEY_FILE)').helpGroup('Connection:'),
    )
    .addOption(
      new Option('--fingerprint <sha256>', 'Trust only this certificate (MUSTER_FINGERPRINT)').helpGroup('Connection:'),
    )
    .addOption(
      new Option('--insecure-skip-verify', 'Trust any certificate (MUSTER_INSECURE_SKIP_VERIFY)').helpGroup(
        'Connection:',
      ),
    )
    .addHelpText(
      'after',
      '\nFirst steps:\n  $ muster operator init\n  $ muster login --url https://127.0.0.1:4748\n  $ muster agents list\n\nMore about a command: muster COMMAND --help',
    );

  const named = nouns.filter(({ name }) => name === noun);
  for (const { name, summary, group, load, example } of named.length > 0 ? named : nouns) {
    const command = program.command(name).description(summary).helpGroup(group);
    if (example !== undefined) command.addHelpText('after', `\nExample:\n  $ ${example}`);
    if (load === null)
      command
        .helpOption(false)
        .allowUnknownOption()
        .allowExcessArguments()
        .argument('[args...]')
        .action(() => command.error(`error: muster ${name} is started by the launcher, cli/bin/muster`));
  }
  for (const command of program.commands)
    command.addHelpText('afterAll', '\nGlobal options, such as --json and --profile: muster --help');
  program.hook('preSubcommand', async (_, command) => {
    await loadNoun(command, act);
  });
  return program;
}

const loaded = new WeakSet<Command>();

async function loadNoun(command: Command, act: Act): Promise<void> {
  const noun = nouns.find(({ name }) => name === command.name());
  if (!noun?.load || loaded.has(command)) return;
  loaded.add(command);
  const { register } = await noun.load();
  register(command, act);
  for (const each of [command, ...command.commands]) each.helpCommand(false);
  const names = new Set(command.commands.map((each) => each.name()));
  for (const each of command.commands)
    for (const other of otherVerbs[each.name()] ?? [])
      if (!names.has(other)) {
        names.add(other);
        each.alias(other);
      }
}

/**
 * Returns the CLI with all commands, arguments, and options, but with no-op actions.
 * @param width columns of the help output
 */
export async function describeProgram(width: number | null = null): Promise<Command> {
  const act: Act = () => async () => {};
  const program = createProgram({ version: '', act, stdout: () => {}, stderr: () => {}, width });
  for (const command of program.commands) await loadNoun(command, act);
  return program;
}

/** Completes a command line. Loads only the typed noun, and ignores all errors, because a shell must not show them. */
async function complete(program: Command, typed: readonly string[], surroundings: Surroundings): Promise<void> {
  try {
    const [last = '', ...before] = typed.toReversed();
    // Completes the first word after `agent` in the same way as after `agents`.
    const words = [
      ...(before.length === 1 && before[0] === 'agent' ? ['agents'] : withNoun(before.reverse(), isNoun)),
      last,
    ];
    const noun = program.commands.find((command) => words.slice(0, -1).includes(command.name()));
    if (noun !== undefined) await loadNoun(noun, () => async () => {});
    const { answer } = await import('./answer-completion.ts');
    await answer(program, words, surroundings);
  } catch {
    // Prints no completions after an error.
  }
}

/** Reports whether the words request build information: `--version` and `-v`, in any order. */
const asksForBuild = (words: readonly string[]): boolean =>
  words.length === 2 &&
  words.some((word) => /^(-V|--version)$/.test(word)) &&
  words.some((word) => /^(-v|--verbose)$/.test(word));

/** Returns the build information for bug reports. */
function buildText(): string {
  const build = executable()?.build;
  if (build === undefined) return `${packageJson.version}\nfrom a clone, on Node ${process.version}\n`;
  const { version, commit, date, node } = build;
  return `${version}\ncommit ${commit ?? 'none: built from changed files'}\nbuilt from the state of ${date}\non Node ${node}\n`;
}

/**
 * Returns the typed words with the noun's canonical name, and with the default subcommand if none was typed. Loads
 * the noun.
 */
async function completed(program: Command, typed: readonly string[], act: Act): Promise<readonly string[]> {
  let words = typed;
  let command = program;
  for (let at = operandAt(words); at !== -1; at = operandAt(words, at + 1)) {
    const below = command.commands.find((each) => each.name() === words[at]);
    if (below === undefined) break;
    if (command === program) await loadNoun(below, act);
    const { nearest } = await import('../text/nearest.ts');
    words = withVerb(words, at, below, nearest);
    command = below;
  }
  return words;
}

/**
 * Returns the command that the words name, the first word that is not part of the name, and the word before it, which
 * may be an option with a value.
 */
function commandIn(
  program: Command,
  words: readonly string[],
): { command: Command; rest: string | undefined; before: string | undefined } {
  let command = program;
  let at = operandAt(words);
  for (; at !== -1; at = operandAt(words, at + 1)) {
    const below = command.commands.find(
      (each) => each.name() === words[at] || each.aliases().includes(words[at] ?? ''),
    );
    if (below === undefined) break;
    command = below;
  }
  return { command, rest: words[at], before: words[at - 1] };
}

/** Reports whether a word may be the ID or the name of an item: `01K`, `web-1`. */
const namesItem = (word: string): boolean => /[\d-]/.test(word);

/** Rejects an unknown command before `--help`, for which commander would print the help of the command above. */
function requireKnown(program: Command, words: readonly string[]): void {
  if (!words.some((word) => word === '-h' || word === '--help')) return;
  const { command, rest, before } = commandIn(program, words);
  if (rest === undefined || command.commands.length < 2 || command.registeredArguments.length > 0) return;
  // The word may be the value of an option, or an item whose subcommand was omitted.
  if (command !== program && (before?.startsWith('-') || namesItem(rest) || shown.has(command.name()))) return;
  throw new CommanderError(1, 'commander.unknownCommand', `error: unknown command '${rest}'`);
}

/**
 * Prints an error from the command line parser, with the closest name or the command that prints help.
 * @returns the exit code
 */
async function printUsageError(
  error: CommanderError,
  program: Command,
  words: readonly string[],
  how: Parameters<typeof PrintError>[1],
): Promise<number> {
  const [{ printError }, { usageError }, { nearest }] = await Promise.all([
    import('./run.ts'),
    import('../exit.ts'),
    import('../text/nearest.ts'),
  ]);
  const { command } = commandIn(program, words);
  const [said = '', suggestion] = error.message.replace(/^error: /, '').split('\n');
  const message = error.code === 'commander.help' ? 'the command is missing' : said;
  const [, unknown] = /^unknown command '(.*)'$/s.exec(said) ?? [];
  // The launcher of a clone is not in PATH.
  const runner = launched.has(command.name()) && executable() === null ? 'npx ' : '';
  let remedy = suggestion?.replace(/^\((.*)\)$/, '$1') ?? `Run \`${runner}${wordsOf(command)} --help\`.`;
  if (unknown !== undefined) {
    const elsewhere = command === program && Object.hasOwn(withoutNoun, unknown) ? withoutNoun[unknown] : null;
    // A noun after another one: `muster agents plan`.
    const isMisplaced = command !== program && isNoun(unknown);
    const near =
      elsewhere ??
      nearest(
        unknown,
        command.commands.map((each) => each.name()),
      );
    // The name of an item after a noun: `muster metrics web-1`.
    const shows = command !== program && command.commands.some((each) => each.name() === 'show');
    const guess = near ?? (shows && namesItem(unknown) ? `show ${unknown}` : null);
    const listed =
      command === program ? '' : ` Its commands: ${command.commands.map((each) => each.name()).join(', ')}.`;
    if (isMisplaced) remedy = `Did you mean \`muster ${unknown}\`?`;
    else
      remedy =
        guess === null
          ? `Run \`${wordsOf(command)} --help\`.${listed}`
          : `Did you mean \`${wordsOf(command)} ${guess}\`?`;
  }
  return await printError(usageError(message, remedy), how);
}

/**
 * Runs the command line.
 * @param typed the words after `muster`
 * @returns the exit code
 */
export async function runProgram(typed: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr, env } = surroundings;
  let exit = 0;
  const act: Act =
    (verb) =>
    async (...args) => {
      // Commander passes the arguments first, then the options and the command.
      const command = args.at(-1) as Command;
      const rest = args.slice(0, -1);
      const { runVerb } = await import('./run.ts');
      const options = command.optsWithGlobals<GlobalOptions & { watch?: boolean }>();
      exit = await runVerb(surroundings, options, async (context) => {
        const run = (here: Context) => verb(here, ...(rest as never));
        if (!options.watch) return await run(context);
        const { watch } = await import('./watch.ts');
        return await watch(context, surroundings, wordsOf(command), run);
      });
    };
  // The options have not been parsed yet, but `--json` must apply to parse errors too.
  const end = typed.indexOf('--');
  const json =
    typed.slice(0, end === -1 ? undefined : end).includes('--json') || /^(1|true|yes|on)$/i.test(env.MUSTER_JSON ?? '');
  const [first, ...others] = typed[0] === '__complete' ? typed : withNoun(typed, isNoun);
  const program = createProgram({
    version: packageJson.version,
    act,
    noun: first === undefined ? undefined : withNoun(typed, isNoun)[operandAt(typed)],
    width: stdout.isTTY ? Number(env.COLUMNS) || (stdout.columns ?? 80) : null,
    stdout: (text) => void stdout.write(text),
    stderr: (text) => {
      if (!json) stderr.write(text);
    },
  });
  if (first === '__complete') {
    await complete(program, others.slice(others[0] === '--' ? 1 : 0), surroundings);
    return 0;
  }
  if (first === undefined && stdout.isTTY === true && !json) {
    const { home, isSetUp } = await import('../verbs/fleet/home.ts');
    const { runVerb } = await import('./run.ts');
    if (await isSetUp(env)) return await runVerb(surroundings, {}, home);
  }
  const requested = requestedWords(
    program,
    [first, ...others].filter((word) => word !== undefined),
  );
  if (asksForBuild(requested)) {
    stdout.write(buildText());
    return 0;
  }
  let words = requested;
  try {
    words = await completed(program, requested, act);
    requireKnown(program, words);
    await program.parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    // Commander has printed the help or the version, or has rejected the command line, which this function reports.
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return 0;
    if (error.code === 'commander.help' && !json) return 2;
    return await printUsageError(error, program, words, { stderr, json, verbose: false, env });
  }
}

/**
 * Treats `muster` as `muster --help`, and `muster help plan` as `muster plan --help`, because commander's own help
 * command does not load the subcommand.
 */
function requestedWords(program: Command, typed: readonly string[]): readonly string[] {
  const [first, ...others] = typed;
  if (first === undefined) return ['--help'];
  if (first !== 'help') return typed;
  const words = withNoun(others, isNoun);
  const name = words[operandAt(words)];
  // Reports an unknown subcommand with the usual error, which suggests the most similar name.
  const isKnown = name === undefined || program.commands.some((command) => command.name() === name);
  return isKnown ? [...words, '--help'] : words;
}
