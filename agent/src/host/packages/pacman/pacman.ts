import { HostFailure } from '../../failure.ts';
import { lastLine } from '../../processes/failure-text.ts';
import type { CommandResult } from '../../processes/run-command.ts';
import type { TransactionResult } from '../../processes/transaction.ts';
import { type InstalledPackages, installedPackages } from '../installed-packages.ts';
import type { PackageToolContext } from '../package-lock.ts';
import { ask, change, changeUnlocked, type PackageProgram } from '../package-program.ts';
import { sourcesStamp } from '../sources-stamp.ts';
import { isPacmanLocked, parseInstalled } from './pacman-output.ts';
import { comparePacmanVersions } from './pacman-version.ts';

/** Runs pacman. Callers must validate the arguments, which are package names and versions. */

const program: PackageProgram = {
  program: 'pacman',
  environment: { LC_ALL: 'C.UTF-8', TERM: 'dumb' },
  isLocked: isPacmanLocked,
};

/** Answers every question with its default, which is "no" for the removal of another package. */
const options = ['--noconfirm', '--color', 'never'];
/** Refused by `--query`. */
const transactionOptions = [...options, '--noprogressbar'];

/**
 * Reads all packages with one query.
 * @throws HostFailure if this machine has no pacman, or pacman cannot read its database
 */
export async function readPacman(context: PackageToolContext): Promise<InstalledPackages> {
  const { exitCode, stdout, stderr } = await pacmanQuery(['--query'], context);
  // An empty database also ends with 1, but without an error. pacman warns of a repository that it has not read yet.
  if (exitCode !== 0 && (exitCode !== 1 || stderr.split('\n').some((line) => !/^(warning:|\s*$)/.test(line))))
    throw new HostFailure(`pacman cannot read its database: ${lastLine(stderr) || 'it printed no error'}`);
  return installedPackages(parseInstalled(stdout), comparePacmanVersions);
}

/**
 * Runs one transaction, such as `--sync …`. Waits for the lock.
 * @throws LeftRunning if the agent stops first
 */
export const pacman = (args: readonly string[], context: PackageToolContext): Promise<TransactionResult> =>
  changeUnlocked(program, [...transactionOptions, ...args], context);

/**
 * Removes exactly the given packages in one transaction. pacman refuses if another installed package needs one of them,
 * and holds its lock from that decision to the end. Does not wait for the lock, because dependencies may change during
 * the wait.
 * @throws LeftRunning if the agent stops first
 */
export const pacmanRemoveExactly = (
  names: readonly string[],
  context: PackageToolContext,
): Promise<TransactionResult> => change(program, [...transactionOptions, '--remove', '--', ...names], context);

/**
 * Refreshes the metadata of all repositories. Waits for the lock. Finishes even if the operation is canceled or the agent
 * is killed, because a killed pacman leaves its lock.
 * @throws LeftRunning if the agent stops first
 */
export const pacmanRefresh = (context: PackageToolContext): Promise<TransactionResult> =>
  pacman(['--sync', '--refresh'], { ...context, startedProcess: () => {} });

/** Runs a query or a dry run, neither of which takes the lock. */
export const pacmanQuery = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
  ask(program, [...options, ...args], context);

/** Returns a stamp that changes whenever a file that configures repositories changes. */
export const pacmanSourcesStamp = (): string => sourcesStamp('/etc/pacman.conf', ['/etc/pacman.d']);
