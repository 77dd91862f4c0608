import { systemClock } from '../../../../lib/src/clock.ts';
import { HostFailure } from '../failure.ts';
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
 * @returns the text of setcap(8), such as `cap_chown,cap_net_raw=ep`; empty if the file has none
 * @throws HostFailure
 */
export async function readCapabilities(object: string, path: string): Promise<string> {
  const result = await run('getcap', [object]);
  const text = result.stdout.trimEnd();
  if (result.exitCode === 0 && text === '' && result.stderr === '') return '';
  // Releases before 2.41 print "=" between the path and the capabilities.
  const found = text.startsWith(`${object} `) ? text.slice(object.length + 1).replace(/^= /, '') : '';
  if (result.exitCode !== 0 || !form.test(found)) throw failed('read', path, result);
  return found;
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

function failed(what: 'read' | 'set', path: string, { stdout, stderr, timedOut }: CommandResult): HostFailure {
  const text = `${stderr} ${stdout}`.replaceAll(/[\x00-\x1f\x7f]+/g, ' ').trim();
  const why = timedOut
    ? 'the program took too long'
    : text.includes('Operation not supported')
      ? 'its file system has none; declare them for a path on another file system'
      : text.includes('Operation not permitted')
        ? 'not permitted; the agent must run as root, with the capability CAP_SETFCAP'
        : text.slice(0, 500) || 'no reason given';
  return new HostFailure(`cannot ${what} the capabilities of ${path}: ${why}`);
}
