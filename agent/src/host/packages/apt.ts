import { statSync } from 'node:fs';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { runTransaction, type TransactionResult } from '../processes/transaction.ts';
import { namesIn } from '../read-system.ts';
import { guardEnvironment, guardOptions, type MayGo, refusedByGuard } from './apt-guard.ts';
import { aptComplaint, isLocked, withoutCredentials } from './apt-output.ts';
import { type PackageToolContext, untilUnlocked } from './package-lock.ts';

/** apt and dpkg as programs. What they are given is checked before: names of packages that are known, versions. */

/** Nobody is there to answer, and nothing but apt has a say in what is restarted. */
const environment = {
  DEBIAN_FRONTEND: 'noninteractive',
  APT_LISTCHANGES_FRONTEND: 'none',
  APT_LISTBUGS_FRONTEND: 'none',
  NEEDRESTART_SUSPEND: '1',
  UCF_FORCE_CONFFOLD: '1',
  LC_ALL: 'C.UTF-8',
  TERM: 'dumb',
};

/** A configuration file that somebody changed stays as it is; one that nobody changed is replaced. */
const keepConffiles = ['--force-confdef', '--force-confold'];

/** A machine may be set to purge whatever is removed, or to clear up after every transaction: not what was asked for here. */
const onlyWhatIsAsked = ['-o', 'APT::Get::Purge=false', '-o', 'APT::Get::AutomaticRemove=false'];

const seconds = (ms: number): number => Math.max(0, Math.round(ms / 1000));

/**
 * One transaction of apt: `install …` or `remove …`. Waits for whoever holds the lock.
 * @throws LeftRunning when the agent stops first
 */
export function aptGet(args: readonly string[], context: PackageToolContext): Promise<TransactionResult> {
  return aptGetWaiting(args, context, context.limits.packageLockMs);
}

/** What came of a removal: the transaction, or what it would have taken along, in which case nothing was changed. */
export type RemovalResult = { done: TransactionResult } | { refused: string[] };

/**
 * One transaction of apt that removes something, and only that: whoever installs what needs it, until apt has the lock, does
 * not lose it.
 * @throws LeftRunning when the agent stops first
 */
export async function aptRemove(mayGo: MayGo, context: PackageToolContext): Promise<RemovalResult> {
  const verb = mayGo.what === 'installed' ? 'remove' : 'purge';
  const args = [...guardOptions, verb, '--', ...mayGo.names];
  const done = await untilUnlocked(
    () => aptGetWaiting(args, context, 0, guardEnvironment(mayGo)),
    context,
    ({ output }) => isLocked(output),
  );
  const refused = done.exitCode === 0 ? null : refusedByGuard(done.output);
  return refused === null ? { done } : { refused };
}

function aptGetWaiting(
  args: readonly string[],
  context: PackageToolContext,
  waitMs: number,
  more: Readonly<Record<string, string>> = {},
): Promise<TransactionResult> {
  const options = [
    ...['-q', '-y', '-o', 'Dpkg::Use-Pty=0', '-o', 'Dpkg::Progress-Fancy=0'],
    ...['-o', `DPkg::Lock::Timeout=${seconds(waitMs)}`],
    ...keepConffiles.flatMap((option) => ['-o', `Dpkg::Options::=${option}`]),
    ...onlyWhatIsAsked,
  ];
  return transaction('apt-get', [...options, ...args], context, more);
}

/**
 * dpkg itself, which does not wait for its lock by itself.
 * @throws LeftRunning when the agent stops first
 */
export async function dpkg(args: readonly string[], context: PackageToolContext): Promise<TransactionResult> {
  return untilUnlocked(
    () => transaction('dpkg', [...keepConffiles, ...args], context),
    context,
    ({ output }) => isLocked(output),
  );
}

async function transaction(
  program: string,
  args: readonly string[],
  context: PackageToolContext,
  more: Readonly<Record<string, string>> = {},
): Promise<TransactionResult> {
  const result = await runTransaction(
    {
      program,
      args,
      environment: { ...environment, ...more },
      timeLimit: context.limits.packageMs,
      outputCap: context.limits.outputBytes,
      purpose: 'packages',
      warn: context.warn,
      started: (process) => context.startedProcess(process, 'left'),
      stop: context.stop,
    },
    context.clock,
  );
  return { ...result, output: withoutCredentials(result.output) };
}

/** What would be done; nothing is. */
export function simulate(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask('apt-get', ['-q', '-y', '--simulate', ...onlyWhatIsAsked, ...args], context);
}

export function aptCache(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask('apt-cache', ['-q', ...args], context);
}

/** Marks packages as wanted by somebody, or as there for others only. */
export function aptMark(
  mark: 'auto' | 'manual',
  names: readonly string[],
  context: PackageToolContext,
): Promise<CommandResult> {
  return untilUnlocked(
    () => ask('apt-mark', [mark, '--', ...names], context),
    context,
    ({ stderr }) => isLocked(stderr),
  );
}

function ask(program: string, args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return runCommand(
    {
      program,
      args,
      environment,
      timeLimit: context.limits.packageMs,
      outputCap: 32 * 1024 * 1024,
      started: (process) => context.startedProcess(process),
    },
    context.clock,
  );
}

const lists = '/var/lib/apt/lists';
/** Files that say where packages come from. */
const sourceFiles = '/etc/apt/sources.list';
const sourceDirectories = [
  '/etc/apt/sources.list.d',
  '/etc/apt/keyrings',
  '/etc/apt/trusted.gpg.d',
  '/usr/share/keyrings',
];

/**
 * When the lists of packages were last asked for, and when what says where they come from was last changed.
 * Milliseconds since the epoch; 0: never.
 */
export function listTimes(): { refreshedAt: number; sourcesChangedAt: number } {
  const changed = [
    sourceFiles,
    ...sourceDirectories,
    ...sourceDirectories.flatMap((directory) => namesIn(directory).map((name) => `${directory}/${name}`)),
  ];
  return {
    // apt uses it at every refresh, whether or not anything is new.
    refreshedAt: changedAt(`${lists}/partial`),
    sourcesChangedAt: Math.max(...changed.map(changedAt)),
  };
}

function changedAt(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

/**
 * Asks the sources what they offer.
 * @returns what went wrong with some of them; null when all answered
 */
export async function refreshLists(context: PackageToolContext): Promise<string | null> {
  const args = ['-q', '-o', 'APT::Update::Error-Mode=any', 'update'];
  const run = () =>
    runCommand(
      {
        program: 'apt-get',
        args,
        environment,
        timeLimit: context.limits.packageMs,
        outputCap: 256 * 1024,
        started: (process) => context.startedProcess(process),
        scope: { purpose: 'packages', warn: context.warn },
      },
      context.clock,
    );
  const result = await untilUnlocked(run, context, ({ stderr }) => isLocked(stderr));
  if (result.timedOut) return `apt-get update took longer than ${seconds(context.limits.packageMs)} s`;
  return result.exitCode === 0 ? null : aptComplaint(`${result.stdout}\n${result.stderr}`);
}
