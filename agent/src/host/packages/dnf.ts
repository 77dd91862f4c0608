import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { runTransaction, type TransactionResult } from '../processes/transaction.ts';
import { namesIn, stampOf } from '../read-system.ts';
import { isDnfLocked } from './dnf-output.ts';
import { type PackageToolContext, untilUnlocked } from './package-lock.ts';

/** Runs dnf. Callers must validate the arguments, which are package names and versions. */

const environment = { LC_ALL: 'C.UTF-8', TERM: 'dumb', PYTHONUNBUFFERED: '1' };

/** Makes dnf fail immediately if another process holds the lock, and keep unused dependencies. */
const options = ['--color=never', '--setopt=exit_on_lock=True', '--setopt=clean_requirements_on_remove=False'];

/**
 * Runs one transaction: `install …` or `remove …`. Waits for the lock.
 * @throws LeftRunning if the agent stops first
 */
export const dnf = (args: readonly string[], context: PackageToolContext): Promise<TransactionResult> =>
  untilUnlocked(
    () => dnfWithoutWaiting(args, context),
    context,
    ({ output }) => isDnfLocked(output),
  );

/**
 * Removes exactly the given packages in one transaction. dnf refuses if it would also remove another package, or if one
 * of the given packages is not installed; rpm checks the dependencies again under its lock. Does not wait for the lock,
 * because dependencies may change during the wait.
 * @param nevras each `name-[epoch:]version-release.arch`
 * @throws LeftRunning if the agent stops first
 */
export function dnfRemoveExactly(nevras: readonly string[], context: PackageToolContext): Promise<TransactionResult> {
  const rpms = nevras.map((nevra) => ({ action: 'Removed', nevra, reason: 'user', repo_id: '@System' }));
  // Uses a replay, because only a replay refuses every change that is not in its file. A removal needs no repository.
  const args = ['--disablerepo=*', 'history', 'replay', '/dev/stdin'];
  return dnfWithoutWaiting(args, context, JSON.stringify({ version: '0.0', rpms }));
}

function dnfWithoutWaiting(
  args: readonly string[],
  context: PackageToolContext,
  input?: string,
): Promise<TransactionResult> {
  return runTransaction(
    {
      ...{ program: 'dnf', args: ['-y', ...options, ...args], environment, purpose: 'packages' },
      ...(input === undefined ? {} : { input }),
      ...{ timeLimit: context.limits.packageMs, outputCap: context.limits.outputBytes },
      warn: context.warn,
      started: (process) => context.startedProcess(process, 'left'),
      stop: context.stop,
    },
    context.clock,
  );
}

/** Runs dnf as a dry run. */
export function dnfWould(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask(['--assumeno', ...options, ...args], context);
}

/** Queries the repositories, or checks the installed packages. */
export function dnfQuery(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask(['-q', '--color=never', ...args], context);
}

const ask = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
  untilUnlocked(
    () =>
      runCommand(
        {
          ...{ program: 'dnf', args, environment, timeLimit: context.limits.packageMs, outputCap: 16 * 1024 * 1024 },
          started: (process) => context.startedProcess(process),
          scope: { purpose: 'packages', warn: context.warn },
        },
        context.clock,
      ),
    context,
    ({ stdout, stderr }) => isDnfLocked(`${stdout}\n${stderr}`),
  );

/** Default directories for dnf repositories and their variables, and for the streams of modules. */
const sourceDirectories = [
  '/etc/yum.repos.d',
  '/etc/yum/repos.d',
  '/etc/distro.repos.d',
  '/etc/dnf/vars',
  '/etc/yum/vars',
  '/etc/dnf/modules.d',
];

/** Returns a stamp that changes whenever a file that configures repositories changes. */
export const dnfSourcesStamp = (): string =>
  [
    '/etc/dnf/dnf.conf',
    ...sourceDirectories.flatMap((directory) => namesIn(directory).map((name) => `${directory}/${name}`)),
  ]
    .map((path) => `${path} ${stampOf(path)}`)
    .join('\n');
