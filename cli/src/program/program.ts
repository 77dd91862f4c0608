import { executable } from '@muster/protocol/executable';
import { Command, CommanderError, Help, Option } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import type { Act, Register } from '../context/verb.ts';
import type { GlobalOptions, Surroundings } from './surroundings.ts';

/** A noun on the command line. The code of its subcommands is imported on demand, so that help is fast. */
interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  /** Null for a separate program, which the launcher starts. */
  readonly load: (() => Promise<{ register: Register }>) | null;
  /** Only for a separate program, which prints the rest of its help. */
  readonly example?: string;
}

const everyday = 'Every day:';
const fleet = 'Many machines:';
const setup = 'Signing in:';
const scripts = 'For scripts:';
const roles = 'Running Muster:';

const entries: readonly Entry[] = [
  {
    name: 'status',
    group: everyday,
    summary: 'show whether the orchestrator is healthy',
    load: () => import('../verbs/fleet/status.ts'),
  },
  {
    name: 'overview',
    group: everyday,
    summary: 'show the fleet at a glance',
    load: () => import('../verbs/fleet/overview.ts'),
  },
  {
    name: 'agents',
    group: everyday,
    summary: 'list, show, approve, tag, and enroll agents',
    load: () => import('../verbs/agents/agents.ts'),
  },
  {
    name: 'modules',
    group: everyday,
    summary: 'upload, check, compare, and show modules',
    load: () => import('../verbs/modules/modules.ts'),
  },
  {
    name: 'plan',
    group: everyday,
    summary: 'show what an apply would do',
    load: () => import('../verbs/operations/plan.ts'),
  },
  {
    name: 'apply',
    group: everyday,
    summary: 'bring an agent to its desired state',
    load: () => import('../verbs/operations/apply.ts'),
  },
  {
    name: 'drift',
    group: everyday,
    summary: 'compare machines with their applied state; list drifted machines',
    load: () => import('../verbs/drift/drift.ts'),
  },
  {
    name: 'reconcile',
    group: everyday,
    summary: 'list agents that are not in their desired state, the worst first',
    load: () => import('../verbs/drift/reconcile.ts'),
  },
  {
    name: 'operations',
    group: everyday,
    summary: 'list, show, follow, and cancel operations',
    load: () => import('../verbs/operations/operations.ts'),
  },
  {
    name: 'state',
    group: everyday,
    summary: 'show the applied state of a machine',
    load: () => import('../verbs/operations/state.ts'),
  },
  {
    name: 'terminal',
    group: everyday,
    summary: 'open a shell on an agent; list and replay terminal sessions',
    load: () => import('../verbs/terminals/terminals.ts'),
  },
  {
    name: 'metrics',
    group: everyday,
    summary: 'show cpu, memory, disk, load, and network of agents',
    load: () => import('../verbs/agents/metrics.ts'),
  },
  {
    name: 'events',
    group: everyday,
    summary: 'show events as they happen',
    load: () => import('../verbs/fleet/events.ts'),
  },
  {
    name: 'assignments',
    group: fleet,
    summary: 'assign modules to agents; plan and apply on all of them',
    load: () => import('../verbs/modules/assignments.ts'),
  },
  {
    name: 'runs',
    group: fleet,
    summary: 'list, show, follow, and cancel plans and applies on many agents',
    load: () => import('../verbs/operations/runs.ts'),
  },
  {
    name: 'discover',
    group: fleet,
    summary: 'announce this orchestrator to agents that have none',
    load: () => import('../verbs/agents/discovery.ts'),
  },
  {
    name: 'tags',
    group: fleet,
    summary: 'list the tags in use; set and remove tags of many agents',
    load: () => import('../verbs/agents/tags.ts'),
  },
  {
    name: 'selectors',
    group: fleet,
    summary: 'show which agents a selector matches',
    load: () => import('../verbs/agents/selectors.ts'),
  },
  {
    name: 'secrets',
    group: fleet,
    summary: 'manage encrypted values that modules use and no one can read',
    load: () => import('../verbs/fleet/secrets.ts'),
  },
  {
    name: 'enrolment-tokens',
    group: fleet,
    summary: 'create, list, and revoke enrollment tokens',
    load: () => import('../verbs/agents/enrollment.ts'),
  },
  {
    name: 'notifications',
    group: fleet,
    summary: 'list notifications, and mark them as read',
    load: () => import('../verbs/fleet/notifications.ts'),
  },
  {
    name: 'channels',
    group: fleet,
    summary: 'manage the destinations of notifications',
    load: () => import('../verbs/fleet/channels.ts'),
  },
  {
    name: 'kinds',
    group: fleet,
    summary: 'list and show the resource kinds that modules may use, and their fields',
    load: () => import('../verbs/kinds/kinds.ts'),
  },
  {
    name: 'windows',
    group: fleet,
    summary: 'manage maintenance windows, which allow window-only applies and mute notifications',
    load: () => import('../verbs/fleet/windows.ts'),
  },
  {
    name: 'audit',
    group: fleet,
    summary: 'list, follow, verify, export, and prune the audit log',
    load: () => import('../verbs/fleet/audit.ts'),
  },
  {
    name: 'operator',
    group: setup,
    summary: 'create an operator key; show who you are; manage operators',
    load: () => import('../verbs/operators/operators.ts'),
  },
  { name: 'login', group: setup, summary: 'sign in now', load: () => import('../verbs/operators/login.ts') },
  { name: 'logout', group: setup, summary: 'sign out', load: () => import('../verbs/operators/logout.ts') },
  {
    name: 'web-login',
    group: setup,
    summary: 'print a link that signs in to the console as you',
    load: () => import('../verbs/operators/web-login.ts'),
  },
  {
    name: 'profile',
    group: setup,
    summary: 'manage named orchestrators, and switch between them',
    load: () => import('../verbs/operators/profile.ts'),
  },
  {
    name: 'doctor',
    group: setup,
    summary: 'find problems and their solutions',
    load: () => import('../verbs/fleet/doctor.ts'),
  },
  {
    name: 'schema',
    group: scripts,
    summary: 'print the JSON Schemas of the --json output',
    load: () => import('../verbs/modules/schema.ts'),
  },
  {
    name: 'settings',
    group: roles,
    summary: 'show the configuration of the orchestrator',
    load: () => import('../verbs/fleet/settings.ts'),
  },
  {
    name: 'completion',
    group: scripts,
    summary: 'print the completion script of a shell',
    load: () => import('../verbs/fleet/completion.ts'),
  },
  { name: 'orchestrator', group: roles, summary: 'run an orchestrator', load: null },
  { name: 'agent', group: roles, summary: 'run an agent on this machine', load: null },
  {
    name: 'migrate',
    group: roles,
    summary: 'migrate the schema of a database, without starting',
    load: null,
    example: 'muster migrate --data-dir /var/lib/muster-orchestrator',
  },
  {
    name: 'export',
    group: roles,
    summary: 'write a whole database to a file',
    load: null,
    example: 'muster export --data-dir /var/lib/muster-orchestrator muster.export',
  },
  {
    name: 'import',
    group: roles,
    summary: 'read an export into an empty SQLite or PostgreSQL database',
    load: null,
    example: 'muster import --database-url-file /etc/muster/database-url muster.export',
  },
  {
    name: 'backup',
    group: roles,
    summary: 'write a backup of a running orchestrator to a file, or verify one',
    load: null,
    example: 'muster backup --data-dir /var/lib/muster-orchestrator --encrypt muster.backup',
  },
  {
    name: 'restore',
    group: roles,
    summary: 'restore an orchestrator from a backup',
    load: null,
    example: 'muster restore --data-dir /var/lib/muster-orchestrator muster.backup',
  },
];

/** Names of the separate programs that the launcher starts. */
export const launched: ReadonlySet<string> = new Set(
  entries.filter(({ load }) => load === null).map(({ name }) => name),
);

interface ProgramOptions {
  version: string;
  /** Makes a function the action of a command. */
  act: Act;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
  /** Width of help output; null if the output is not a terminal. */
  width: number | null;
  /** The first word. If it is a noun, the other nouns are not registered, not even for suggestions. */
  first?: string | undefined;
}

/** Moves the global options below the command's options. */
function globalsLast(command: Command, helper: Help): string {
  const sections = Help.prototype.formatHelp.call(helper, command, helper).trimEnd().split('\n\n');
  const isGlobal = (section: string) => section.startsWith('Global Options:');
  return `${[...sections.filter((section) => !isGlobal(section)), ...sections.filter(isGlobal)].join('\n\n')}\n`;
}

/** Creates the command line with the necessary nouns; the subcommands are loaded later. */
function createProgram(options: ProgramOptions): Command {
  const { version, act, stdout, stderr, width, first } = options;
  const program = new Command('muster');
  program
    .description('Muster keeps fleets of real machines in the state you declare.')
    .version(version, '-V, --version', 'print the version; with -v also the build')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .showSuggestionAfterError(true)
    .showHelpAfterError('to do: use --help for usage information')
    .configureHelp({ showGlobalOptions: true, helpWidth: width ?? 100, formatHelp: globalsLast })
    .configureOutput({ writeOut: stdout, writeErr: stderr, outputError: (text, write) => write(text) })
    .exitOverride()
    .addOption(new Option('--json', 'print data and errors as JSON (MUSTER_JSON)').helpGroup('Output:'))
    .addOption(new Option('-v, --verbose', 'show all details and error codes (MUSTER_VERBOSE)').helpGroup('Output:'))
    .addOption(new Option('--quiet', 'print only data, warnings, and errors (MUSTER_QUIET)').helpGroup('Output:'))
    .addOption(new Option('--no-color', 'no colors (MUSTER_NO_COLOR, NO_COLOR)').helpGroup('Output:'))
    .addOption(new Option('--url <url>', 'the orchestrator (MUSTER_URL)').helpGroup('Where to:'))
    .addOption(new Option('--profile <name>', 'a named orchestrator (MUSTER_PROFILE)').helpGroup('Where to:'))
    .addOption(new Option('--key-file <file>', 'your operator key (MUSTER_KEY_FILE)').helpGroup('Where to:'))
    .addOption(
      new Option('--fingerprint <sha256>', 'accept only this certificate (MUSTER_FINGERPRINT)').helpGroup('Where to:'),
    )
    .addOption(
      new Option('--insecure-skip-verify', 'accept any certificate (MUSTER_INSECURE_SKIP_VERIFY)').helpGroup(
        'Where to:',
      ),
    )
    .addHelpText(
      'after',
      '\nFirst steps:\n  $ muster operator init\n  $ muster login --url https://127.0.0.1:4748\n  $ muster agents list\n\nMore about a verb: muster VERB --help',
    );

  const named = entries.filter(({ name }) => name === first);
  for (const { name, summary, group, load, example } of named.length > 0 ? named : entries) {
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
  program.hook('preSubcommand', async (_, command) => {
    await loadEntry(command, act);
  });
  return program;
}

const loaded = new WeakSet<Command>();

async function loadEntry(command: Command, act: Act): Promise<void> {
  const entry = entries.find(({ name }) => name === command.name());
  if (!entry?.load || loaded.has(command)) return;
  loaded.add(command);
  const { register } = await entry.load();
  register(command, act);
  for (const each of [command, ...command.commands]) each.helpCommand(false);
}

/** Returns the command line with all commands, arguments, and options loaded. The commands do nothing. */
export async function describeProgram(): Promise<Command> {
  const act: Act = () => async () => {};
  const program = createProgram({ version: '', act, stdout: () => {}, stderr: () => {}, width: null });
  for (const command of program.commands) await loadEntry(command, act);
  return program;
}

/** Completes a command line. Loads only the typed noun, and ignores all errors: a shell must not show them. */
async function complete(program: Command, typed: readonly string[], surroundings: Surroundings): Promise<void> {
  try {
    const noun = program.commands.find((command) => typed.slice(0, -1).includes(command.name()));
    if (noun !== undefined) await loadEntry(noun, () => async () => {});
    const { answer } = await import('./answer-completion.ts');
    await answer(program, typed, surroundings);
  } catch {
    // Print no completions.
  }
}

/** Reports whether the words ask for build information: `--version` and `-v`, in any order. */
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
      // Commander passes the arguments, the options, and finally the command.
      const command = args.at(-1) as Command;
      const rest = args.slice(0, -1);
      const { runVerb } = await import('./run.ts');
      exit = await runVerb(surroundings, command.optsWithGlobals<GlobalOptions>(), (context) =>
        verb(context, ...(rest as never)),
      );
    };
  // The options are not parsed yet, but `--json` must apply to parse errors too.
  const end = typed.indexOf('--');
  const json =
    typed.slice(0, end === -1 ? undefined : end).includes('--json') || /^(1|true|yes|on)$/i.test(env.MUSTER_JSON ?? '');
  const program = createProgram({
    version: packageJson.version,
    act,
    first: typed[0],
    width: stdout.isTTY ? Number(env.COLUMNS) || (stdout.columns ?? 80) : null,
    stdout: (text) => void stdout.write(text),
    stderr: (text) => {
      if (!json) stderr.write(text);
    },
  });
  // Treat `muster help plan` as `muster plan --help`: commander's own help command does not load the subcommand.
  const [first, ...others] = typed;
  if (first === '__complete') {
    await complete(program, others.slice(others[0] === '--' ? 1 : 0), surroundings);
    return 0;
  }
  const commandName = others.find((word) => !word.startsWith('-'));
  // Report an unknown subcommand with the usual error, which suggests the most similar name.
  const isKnown = commandName === undefined || program.commands.some((command) => command.name() === commandName);
  const words =
    first === undefined ? ['--help'] : first === 'help' ? [...others, ...(isKnown ? ['--help'] : [])] : typed;
  if (asksForBuild(words)) {
    stdout.write(buildText());
    return 0;
  }
  try {
    await program.parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    // Commander has printed the help, the version, or a usage error.
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (json) {
        const [{ printError }, { usageError }] = await Promise.all([import('./run.ts'), import('../exit.ts')]);
        const said = error.code === 'commander.help' ? 'the verb is missing' : error.message;
        const [message = '', hint] = said.replace(/^error: /, '').split('\n');
        const remedy = hint ?? 'Use --help for usage information.';
        return printError(usageError(message, remedy), { stderr, json, verbose: false, env });
      }
      return 2;
    }
    throw error;
  }
}
