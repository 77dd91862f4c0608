import type { CommandResult } from '../../processes/run-command.ts';
import type { TransactionResult } from '../../processes/transaction.ts';
import { namesIn, readText } from '../../read-system.ts';
import type { PackageToolContext } from '../package-lock.ts';
import { ask, changeUnlocked, type PackageProgram } from '../package-program.ts';
import { sourcesStamp } from '../sources-stamp.ts';
import { isZypperLocked } from './zypper-output.ts';

/** Runs zypper. Callers must validate the arguments, which are package names and versions. */

const program: PackageProgram = {
  program: 'zypper',
  // Makes zypper fail immediately if another process holds the lock.
  environment: { LC_ALL: 'C.UTF-8', TERM: 'dumb', ZYPP_LOCK_TIMEOUT: '0' },
  isLocked: isZypperLocked,
};

/** Answers every question with its default, which refuses solutions that zypper would have to choose. */
const options = ['--non-interactive', '--no-color', '--no-refresh'];

/**
 * Runs one transaction: `install …`. Waits for the lock.
 * @throws LeftRunning if the agent stops first
 */
export const zypper = (args: readonly string[], context: PackageToolContext): Promise<TransactionResult> =>
  changeUnlocked(program, [...options, ...args], context);

/** Runs a query or a dry run, without a refresh of the metadata. */
export const zypperQuery = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
  ask(program, [...options, ...args], context);

/** Refreshes the metadata of all repositories that have changed. */
export const zypperRefresh = (context: PackageToolContext): Promise<CommandResult> =>
  ask(program, ['--non-interactive', '--no-color', 'refresh'], context);

const sourceDirectories = ['/etc/zypp/repos.d', '/etc/zypp/services.d', '/etc/zypp/vars.d'];

/** Returns a stamp that changes whenever a file that configures repositories changes. */
export const zypperSourcesStamp = (): string => sourcesStamp('/etc/zypp/zypp.conf', sourceDirectories);

/** libzypp reads the second directory if the first one lacks a file. */
const configurations = ['/etc/zypp', '/usr/etc/zypp'];

/**
 * Returns the packages of which libzypp keeps several versions, as its configuration lists them: names, and
 * `provides:CAPABILITY`.
 */
export function multiversionSpecs(directories: readonly string[] = configurations): Set<string> {
  const lists = directories.flatMap((directory) => {
    const settings = [
      `${directory}/zypp.conf`,
      ...namesIn(`${directory}/zypp.conf.d`).map((name) => `${directory}/zypp.conf.d/${name}`),
    ].map((path) => /^[ \t]*multiversion[ \t]*=(.*)$/m.exec(readText(path) ?? '')?.[1] ?? '');
    const own = namesIn(`${directory}/multiversion.d`).map(
      (name) => readText(`${directory}/multiversion.d/${name}`)?.replace(/^\s*#.*$/gm, '') ?? '',
    );
    return [...settings, ...own];
  });
  return new Set(lists.flatMap((list) => list.split(/[\s,]+/)).filter(Boolean));
}
