import { systemClock } from '../../../../lib/src/clock.ts';
import { HostFailure } from '../failure.ts';
import { missingProgram } from '../processes/find-program.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';

/**
 * Reads and sets the capabilities of files with getcap and setcap of libcap. Neither program follows a symbolic link, so
 * no path below /proc/self/fd can lead them to an open file.
 */

const toolMs = 10_000;

/** Reports whether the machine lacks the programs that read and set capabilities. */
export const lacksCapabilityPrograms = (): boolean =>
  missingProgram('getcap') !== null || missingProgram('setcap') !== null;

/**
 * Reads the capabilities of a file.
 * @param file absolute path for the program, whose components no unprivileged user can change
 * @param path path for messages
 * @returns text of getcap, such as `cap_net_raw=ep`; empty for no capabilities, also if the file system has none
 * @throws HostFailure
 */
export async function readCapabilities(file: string, path: string): Promise<string> {
  // -n also shows the user namespace in which the capabilities apply.
  const result = await run('getcap', ['-n', file]);
  // On a file system without capabilities, some versions of getcap print nothing and others an error.
  if (isUnsupported(result)) return '';
  const text = result.exitCode === 0 && result.stderr === '' ? parseGetcap(result.stdout, file) : null;
  if (text === null) throw failed('read', path, result);
  return text;
}

const textPattern = /^[a-z0-9_=][a-z0-9_,=+ -]*( \[rootid=\d+\])?$/;

/** Parses the output of getcap for one file; null if it has another form. */
export function parseGetcap(output: string, file: string): string | null {
  if (output === '') return '';
  if (!output.startsWith(`${file} `) || !output.endsWith('\n')) return null;
  // libcap before 2.41 begins each list with an equals sign of its own.
  const text = output.slice(file.length + 1, -1).replace(/^= /, '');
  return textPattern.test(text) ? text : null;
}

/**
 * Returns one entry for each capability in a text of getcap, such as `cap_net_raw=ep`, sorted. Parts that name no
 * capability, such as `=ep` for all, are returned unchanged.
 */
export function capabilitiesIn(text: string): string[] {
  const flagsOf = new Map<string, string>();
  const others: string[] = [];
  for (const clause of text.split(' ')) {
    const [, names, changes = ''] = /^([a-z0-9_,]+)((?:[=+-][eip]*)+)$/.exec(clause) ?? [];
    if (names === undefined) {
      if (clause !== '' && clause !== '=') others.push(clause);
      continue;
    }
    for (const [, how, flags = ''] of changes.matchAll(/([=+-])([eip]*)/g))
      for (const name of names.split(',')) {
        const now = how === '=' ? '' : (flagsOf.get(name) ?? '');
        const has = (flag: string) => (flags.includes(flag) ? how !== '-' : now.includes(flag));
        flagsOf.set(name, [...'eip'].filter(has).join(''));
      }
  }
  const entries = [...flagsOf].flatMap(([name, flags]) => (flags === '' ? [] : [`${name}=${flags}`]));
  return [...entries, ...others].sort();
}

/**
 * Sets the capabilities of a file, unless it has the same.
 * @param file as in {@link readCapabilities}
 * @param text text of getcap, or entries such as `cap_net_raw=ep` with a space in between; empty for no capabilities
 * @throws HostFailure
 */
export async function writeCapabilities(file: string, path: string, text: string): Promise<void> {
  if (text !== '' && !textPattern.test(text)) throw new HostFailure(`the capabilities for ${path} are not valid`);
  const now = await readCapabilities(file, path);
  if (capabilitiesIn(now).join() === capabilitiesIn(text).join()) return;
  const [, list = '', namespace] = /^(.*?)(?: \[rootid=(\d+)\])?$/.exec(text) ?? [];
  const options = text === '' ? ['-r'] : [...(namespace === undefined ? [] : ['-n', namespace]), list];
  const result = await run('setcap', ['-q', ...options, file]);
  if (result.exitCode !== 0) throw failed('set', path, result);
}

const isUnsupported = ({ stderr }: CommandResult): boolean => stderr.includes('Operation not supported');

const run = (program: string, args: readonly string[]): Promise<CommandResult> =>
  runCommand({ program, args, timeLimit: toolMs, outputCap: 16 * 1024, environment: { LC_ALL: 'C' } }, systemClock);

function failed(what: 'read' | 'set', path: string, result: CommandResult): HostFailure {
  const { stderr, timedOut } = result;
  const why = timedOut
    ? 'the program took too long'
    : isUnsupported(result)
      ? 'its file system has none; declare `capabilities` for a path on another one'
      : /Operation not permitted|CAP_SETFCAP/.test(stderr)
        ? 'not permitted; the agent must run as root, with the capability CAP_SETFCAP'
        : stderr.trim().slice(0, 500) || 'no reason given';
  return new HostFailure(`cannot ${what} the capabilities of ${path}: ${why}`);
}
