import { systemClock } from '../../../../lib/src/clock.ts';
import { HostFailure } from '../failure.ts';
import { missingProgram } from '../processes/find-program.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';

/** Reads and sets the attributes of files and directories with lsattr and chattr of the package e2fsprogs. */

/** The attributes that resources declare, with their letters in chattr(1). */
const letters = {
  append_only: 'a',
  immutable: 'i',
  no_access_time: 'A',
  no_dump: 'd',
  synchronous: 'S',
} as const;

export type Attribute = keyof typeof letters;
export const attributeNames = Object.keys(letters) as Attribute[];
/** The attributes with which not even root can replace, remove, or change an object. */
export const locks: readonly Attribute[] = ['append_only', 'immutable'];

const toolMs = 10_000;

/** Reports whether the machine lacks the programs that read and set attributes. */
export const lacksAttributePrograms = (): boolean =>
  missingProgram('lsattr') !== null || missingProgram('chattr') !== null;

/**
 * Reads the attributes of a file or directory.
 * @param object path for the program, whose last component must not be a symbolic link, and whose other components no
 *   unprivileged user can change
 * @param path path for messages
 * @returns null if the file system has no attributes
 * @throws HostFailure
 */
export async function readAttributes(object: string, path: string): Promise<Attribute[] | null> {
  const result = await run('lsattr', ['-d', '--', object]);
  if (isUnsupported(result)) return null;
  const [, flags] = /^([A-Za-z-]+) /.exec(result.stdout) ?? [];
  if (result.exitCode !== 0 || flags === undefined) throw failed('read', path, result);
  return attributeNames.filter((name) => flags.includes(letters[name]));
}

/**
 * Sets the given attributes of a file or directory, and clears the others that resources can declare.
 * @param object as in {@link readAttributes}
 * @throws HostFailure
 */
export async function writeAttributes(object: string, path: string, attributes: readonly Attribute[]): Promise<void> {
  const lettersOf = (names: readonly Attribute[]): string => names.map((name) => letters[name]).join('');
  const cleared = lettersOf(attributeNames.filter((name) => !attributes.includes(name)));
  const modes = [
    ...(cleared === '' ? [] : [`-${cleared}`]),
    ...(attributes.length === 0 ? [] : [`+${lettersOf(attributes)}`]),
  ];
  const result = await run('chattr', [...modes, '--', object]);
  // A file system without attributes has none to clear.
  if (result.exitCode !== 0 && !(attributes.length === 0 && isUnsupported(result))) throw failed('set', path, result);
}

/**
 * Clears the attributes with which the object cannot be changed.
 * @param object as in {@link readAttributes}
 * @throws HostFailure
 */
export async function unlock(object: string, path: string): Promise<void> {
  const result = await run('chattr', [`-${locks.map((name) => letters[name]).join('')}`, '--', object]);
  if (result.exitCode !== 0) throw failed('clear', path, result);
}

const isUnsupported = ({ stderr }: CommandResult): boolean =>
  /Operation not supported|Inappropriate ioctl for device/.test(stderr);

const run = (program: string, args: readonly string[]): Promise<CommandResult> =>
  runCommand({ program, args, timeLimit: toolMs, outputCap: 16 * 1024, environment: { LC_ALL: 'C' } }, systemClock);

function failed(what: 'read' | 'set' | 'clear', path: string, result: CommandResult): HostFailure {
  const { stderr, timedOut } = result;
  const why = timedOut
    ? 'the program took too long'
    : isUnsupported(result)
      ? 'its file system does not have all of them; declare others, or declare them for a path on another file system'
      : stderr.includes('Operation not permitted')
        ? 'not permitted; the agent must run as root, with the capability CAP_LINUX_IMMUTABLE'
        : stderr.trim().slice(0, 500) || 'no reason given';
  return new HostFailure(`cannot ${what} the attributes of ${path}: ${why}`);
}
