import type { CommandResult } from '../processes/run-command.ts';
import type { TransactionResult } from '../processes/transaction.ts';
import { isDnfLocked } from './dnf-output.ts';
import type { PackageToolContext } from './package-lock.ts';
import { ask, change, changeUnlocked, type PackageProgram } from './package-program.ts';
import { sourcesStamp } from './sources-stamp.ts';

/** Runs dnf. Callers must validate the arguments, which are package names and versions. */

const program: PackageProgram = {
  program: 'dnf',
  environment: { LC_ALL: 'C.UTF-8', TERM: 'dumb', PYTHONUNBUFFERED: '1' },
  isLocked: isDnfLocked,
};

/** Makes dnf fail immediately if another process holds the lock, and keep unused dependencies. */
const options = ['--color=never', '--setopt=exit_on_lock=True', '--setopt=clean_requirements_on_remove=False'];

/**
 * Runs one transaction: `install …` or `remove …`. Waits for the lock.
 * @throws LeftRunning if the agent stops first
 */
export const dnf = (args: readonly string[], context: PackageToolContext): Promise<TransactionResult> =>
  changeUnlocked(program, ['-y', ...options, ...args], context);

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
  const args = ['-y', ...options, '--disablerepo=*', 'history', 'replay', '/dev/stdin'];
  return change(program, args, context, JSON.stringify({ version: '0.0', rpms }));
}

/** Runs dnf as a dry run. */
export const dnfWould = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
  ask(program, ['--assumeno', ...options, ...args], context);

/** Queries the repositories, or checks the installed packages. */
export const dnfQuery = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
  ask(program, ['-q', '--color=never', ...args], context);

/**
 * Queries the repositories like `dnfQuery`. With `skip_if_unavailable`, dnf ignores a repository that it cannot read, and
 * succeeds; the errors that say so are on standard error, unless `-q` hides them.
 */
export const dnfQueryWithErrors = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
  ask(program, ['--color=never', ...args], context);

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
export const dnfSourcesStamp = (): string => sourcesStamp('/etc/dnf/dnf.conf', sourceDirectories);
