import { statSync } from 'node:fs';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { runTransaction, type TransactionResult } from '../processes/transaction.ts';
import { namesIn } from '../read-system.ts';
import { type AllowedRemoval, guardEnvironment, guardOptions, refusedByGuard } from './apt-guard.ts';
import { aptComplaint, isLocked, withoutCredentials } from './apt-output.ts';
import { type PackageToolContext, untilUnlocked } from './package-lock.ts';

/** Runs apt and dpkg. Callers must validate the arguments, which are names of known packages and versions. */

/** Disables questions, and service restarts by tools such as needrestart. */
const environment = {
  DEBIAN_FRONTEND: 'noninteractive',
  APT_LISTCHANGES_FRONTEND: 'none',
  APT_LISTBUGS_FRONTEND: 'none',
  NEEDRESTART_SUSPEND: '1',
  UCF_FORCE_CONFFOLD: '1',
  LC_ALL: 'C.UTF-8',
  TERM: 'dumb',
};

/** Keeps configuration files that were changed on the machine, and replaces the others. */
const keepConffiles = ['--force-confdef', '--force-confold'];

/** Overrides apt settings that would purge every removed package, or remove unused ones after each transaction. */
const noExtraRemovals = ['-o', 'APT::Get::Purge=false', '-o', 'APT::Get::AutomaticRemove=false'];

/**
 * Maximum number of milliseconds for which apt itself waits for the lock. This costs less than starting apt for each
 * attempt.
 */
const lockWaitMs = 5_000;

const seconds = (ms: number): number => Math.max(0, Math.round(ms / 1000));

/**
 * Runs one transaction of apt: `install …` or `remove …`. Waits for the lock.
 * @throws LeftRunning if the agent stops first
 */
export function aptGet(args: readonly string[], context: PackageToolContext): Promise<TransactionResult> {
  const waitMs = Math.min(lockWaitMs, context.limits.packageLockMs);
  return untilUnlocked(
    () => aptGetWaiting(args, context, waitMs),
    context,
    ({ output }) => isLocked(output),
  );
}

/**
 * `done`: the finished transaction. `refused`: the additional packages that the transaction would have removed; nothing
 * was changed.
 */
export type RemovalResult = { done: TransactionResult } | { refused: string[] };

/**
 * Runs one transaction of apt that removes exactly the allowed packages. If a package that depends on one of them is
 * installed before apt takes its lock, apt removes nothing.
 * @throws LeftRunning if the agent stops first
 */
export async function aptRemove(allowed: AllowedRemoval, context: PackageToolContext): Promise<RemovalResult> {
  const verb = allowed.what === 'installed' ? 'remove' : 'purge';
  const args = [...guardOptions, verb, '--', ...allowed.names];
  const done = await untilUnlocked(
    () => aptGetWaiting(args, context, 0, guardEnvironment(allowed)),
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
    ...noExtraRemovals,
  ];
  return transaction('apt-get', [...options, ...args], context, more);
}

/**
 * Runs dpkg. Waits for the lock, because dpkg itself does not wait.
 * @throws LeftRunning if the agent stops first
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

/** Runs apt-get as a dry run. */
export function simulate(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask('apt-get', ['-q', '-y', '--simulate', ...noExtraRemovals, ...args], context);
}

export function aptCache(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask('apt-cache', ['-q', ...args], context);
}

export type AptMark = 'auto' | 'manual' | 'hold' | 'unhold';

/** Marks packages as installed manually (`manual`) or as dependencies (`auto`), or puts them on hold or releases them. */
export function aptMark(mark: AptMark, names: readonly string[], context: PackageToolContext): Promise<CommandResult> {
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
const sourceFiles = '/etc/apt/sources.list';
const sourceDirectories = [
  '/etc/apt/sources.list.d',
  '/etc/apt/keyrings',
  '/etc/apt/trusted.gpg.d',
  '/usr/share/keyrings',
];

/**
 * Returns when the package lists were last refreshed and when the configured sources last changed, in milliseconds
 * since the epoch, or 0 for never.
 */
export function listTimes(): { refreshedAt: number; sourcesChangedAt: number } {
  const changed = [
    sourceFiles,
    ...sourceDirectories,
    ...sourceDirectories.flatMap((directory) => namesIn(directory).map((name) => `${directory}/${name}`)),
  ];
  return {
    // apt changes this directory on every refresh, even if no list has changed.
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
 * Refreshes the package lists.
 * @returns the errors, or null if all sources succeeded
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
