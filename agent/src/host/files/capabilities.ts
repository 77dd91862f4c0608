import { statfsSync } from 'node:fs';
import { posix } from 'node:path';
import { systemClock } from '../../../../lib/src/clock.ts';
import { errnoOf, HostFailure } from '../failure.ts';
import { missingProgram } from '../processes/find-program.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';

/** Reads and sets the capabilities of files with getcap and setcap of libcap. */

const toolMs = 10_000;

/** Reports whether the machine lacks the programs that read and set capabilities. */
export const lacksCapabilityPrograms = (): boolean =>
  missingProgram('getcap') !== null || missingProgram('setcap') !== null;

/** The form of cap_from_text(3), which consists of clauses. */
const form = /^[a-z0-9_,]*(?:[=+-][eip]*)+(?: [a-z0-9_,]*(?:[=+-][eip]*)+)*$/;

/**
 * Reads the capabilities of a file.
 * @param object path for the program, whose components no unprivileged user can change
 * @param path path for messages
 * @returns the text of setcap(8), such as `cap_chown,cap_net_raw=ep`, followed by ` [rootid=1000]` for capabilities that
 *   count only in user namespaces; empty if the file has none, and null if its file system has none
 * @throws HostFailure
 */
export const readCapabilities = async (object: string, path: string): Promise<string | null> =>
  parseCapabilities(object, path, await run('getcap', ['-n', object]));

/** @returns the result of {@link readCapabilities} for the output of `getcap -n` */
export function parseCapabilities(object: string, path: string, result: CommandResult): string | null {
  const text = result.stdout.trimEnd();
  if (text === '' && isUnsupported(result)) return null;
  if (result.exitCode === 0 && text === '' && result.stderr === '') return '';
  // Releases before 2.41 print "=" between the path and the capabilities.
  const found = text.startsWith(`${object} `) ? text.slice(object.length + 1).replace(/^= /, '') : '';
  if (result.exitCode !== 0 || !form.test(found.replace(rootId, ''))) throw failed('read', path, result);
  return found;
}

const rootId = / \[rootid=\d+\]$/;

/** Reports whether capabilities, as text, count only in the user namespaces of one user. */
export const areOfNamespace = (text: string): boolean => rootId.test(text);

/**
 * Types of statfs(2) of file systems that have no capabilities, and for which getcap may report just none: exFAT, FAT,
 * NFS, and ramfs.
 */
const typesWithout: readonly number[] = [0x2011bab0, 0x4d44, 0x6969, 0x858458f6];

/** Reports whether the file system of a file that may not exist yet is known to have no capabilities. */
export function isOnSystemWithout(path: string): boolean {
  for (let at = path; ; at = posix.dirname(at)) {
    try {
      return typesWithout.includes(statfsSync(at).type);
    } catch (error) {
      const isMissing = ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '');
      if (!isMissing || at === '/') return false;
    }
  }
}

/**
 * Sets the capabilities of a file.
 * @param object as in {@link readCapabilities}
 * @param text the text of setcap(8); empty to remove the capabilities that the file has
 * @throws HostFailure
 */
export async function writeCapabilities(object: string, path: string, text: string): Promise<void> {
  const result = await run('setcap', [text === '' ? '-r' : text, object]);
  if (result.exitCode !== 0) throw failed('set', path, result);
}

const run = (program: string, args: readonly string[]): Promise<CommandResult> =>
  runCommand({ program, args, timeLimit: toolMs, outputCap: 16 * 1024, environment: { LC_ALL: 'C' } }, systemClock);

const isUnsupported = ({ stdout, stderr }: CommandResult): boolean =>
  `${stderr} ${stdout}`.includes('Operation not supported');

function failed(what: 'read' | 'set', path: string, result: CommandResult): HostFailure {
  const { stdout, stderr, timedOut } = result;
  const text = `${stderr} ${stdout}`.replaceAll(/[\x00-\x1f\x7f]+/g, ' ').trim();
  const why = timedOut
    ? 'the program took too long'
    : isUnsupported(result)
      ? 'its file system has none; declare them for a path on another file system'
      : text.includes('Operation not permitted')
        ? 'not permitted; the agent must run as root, with the capability CAP_SETFCAP'
        : text.slice(0, 500) || 'no reason given';
  return new HostFailure(`cannot ${what} the capabilities of ${path}: ${why}`);
}
