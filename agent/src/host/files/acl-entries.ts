import { closeSync, constants, openSync } from 'node:fs';
import { systemClock } from '../../../../lib/src/clock.ts';
import { HostFailure } from '../failure.ts';
import { missingProgram } from '../processes/find-program.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import type { OpenDirectory } from './path-walk.ts';

/** Reads and sets whole access control lists with the programs in the package acl. */

/** A POSIX.1e access control list, without the entries that appear in the object's permissions. */
export type Acl = {
  /** Permission bits of the owning group, 0 to 7. In the permissions of an object with a mask, the mask replaces them. */
  group: number;
  /**
   * The other entries in the format of `getfacl --numeric`, such as `user:1000:rw-`, `mask::rw-`, or
   * `default:other::r-x`.
   */
  entries: string[];
};

/** Maximum size of an ACL as text, in bytes. The kernel stores at most 64 KiB, in 8 bytes for each entry. */
const maxText = 512 * 1024;
const toolMs = 10_000;
const entryPattern = /^(default:)?(user|group|other|mask):(\d*):([r-][w-][x-])$/;

/** Formats permission bits, such as 6 as `rw-`. */
export const formatBits = (bits: number): string =>
  `${bits & 4 ? 'r' : '-'}${bits & 2 ? 'w' : '-'}${bits & 1 ? 'x' : '-'}`;

/** Returns the bits of permissions in the form `rw-`. */
export const parseBits = (text: string): number =>
  (text.includes('r') ? 4 : 0) | (text.includes('w') ? 2 : 0) | (text.includes('x') ? 1 : 0);

/**
 * Parses the output of `getfacl --numeric --omit-header --no-effective`.
 * @throws HostFailure if a line is not an entry
 */
export function parseAcl(text: string): Acl {
  let group = 0;
  const entries: string[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, isDefault, tag, id, bits = ''] = entryPattern.exec(line) ?? [];
    if (tag === undefined) throw new HostFailure(`getfacl printed a line that is not an entry: ${line.slice(0, 100)}`);
    if (isDefault !== undefined || id !== '' || tag === 'mask') entries.push(line);
    else if (tag === 'group') group = parseBits(bits);
  }
  return { group, entries: entries.sort() };
}

/** Reports whether the machine lacks the programs that read and set ACLs. */
export const lacksAclPrograms = (): boolean => missingProgram('getfacl') !== null || missingProgram('setfacl') !== null;

/**
 * Reads the ACL of an open file or directory.
 * @param open path of the open file below /proc, so that it cannot lead to another file
 * @param path path for messages
 * @throws HostFailure
 */
export async function readAcl(open: string, path: string): Promise<Acl> {
  const options = ['--numeric', '--absolute-names', '--omit-header', '--no-effective'];
  const result = await run('getfacl', [...options, '--', open]);
  if (result.exitCode !== 0 || result.truncated) throw failed('read', path, result);
  return parseAcl(result.stdout);
}

/** Reads the ACL of a directory. @throws HostFailure */
export const readDirectoryAcl = (directory: OpenDirectory): Promise<Acl> =>
  withDirectory(directory, (fd) => readAcl(`/proc/${process.pid}/fd/${fd}`, directory.path));

/** Calls a function with the directory opened for reading. */
export async function withDirectory<T>(directory: OpenDirectory, use: (fd: number) => Promise<T>): Promise<T> {
  const fd = openSync(`${directory.self}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return await use(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Replaces the ACL of an open file or directory.
 * @param open path of the open file below /proc, so that it cannot lead to another file
 * @param path path for messages
 * @param mode permissions of the owner, the owning group, and others
 * @param entries all other entries, as in {@link Acl}
 * @throws HostFailure
 */
export async function writeAcl(open: string, path: string, mode: number, entries: readonly string[]): Promise<void> {
  const base = [
    `user::${formatBits((mode >> 6) & 7)}`,
    `group::${formatBits((mode >> 3) & 7)}`,
    `other::${formatBits(mode & 7)}`,
  ];
  // Without -k, default entries stay if the new list has none.
  const result = await run('setfacl', ['-k', '--set', [...base, ...entries].join(','), '--', open]);
  if (result.exitCode !== 0) throw failed('set', path, result);
}

/**
 * Gives an open file the ACL of the file that it replaces. As after chmod, the permissions of the group are the mask.
 * @param open as in {@link writeAcl}
 */
export function writeKeptAcl(open: string, path: string, mode: number, { group, entries }: Acl): Promise<void> {
  const mask = `mask::${formatBits((mode >> 3) & 7)}`;
  const others = entries.filter((entry) => !entry.startsWith('mask::'));
  return writeAcl(open, path, (mode & ~0o070) | (group << 3), [...others, mask]);
}

/**
 * Returns the permissions that an existing file or directory would have without its ACL, with the owning group's bits
 * in place of the mask. If they cannot be read, the group gets no more than others.
 * @param open as in {@link readAcl}
 * @param mode its current permissions, in which the mask replaces the owning group's bits
 */
export async function permissionsWithoutAcl(open: string, path: string, mode: number): Promise<number> {
  const beyondOthers = 0o070 & mode & ~(mode << 3);
  if (beyondOthers === 0) return mode;
  if (!lacksAclPrograms()) {
    const { group, entries } = await readAcl(open, path);
    return entries.some((entry) => entry.startsWith('mask::')) ? mode & ~(0o070 & ~(group << 3)) : mode;
  }
  const { exitCode, stdout } = await run('ls', ['-ldL', '--', open]);
  // GNU ls appends + to the permissions of a file with an ACL.
  return exitCode === 0 && !/^\S{10}\+/.test(stdout) ? mode : mode & ~beyondOthers;
}

const run = (program: string, args: readonly string[]): Promise<CommandResult> =>
  runCommand({ program, args, timeLimit: toolMs, outputCap: maxText, environment: { LC_ALL: 'C' } }, systemClock);

function failed(what: 'read' | 'set', path: string, { stderr, timedOut, truncated }: CommandResult): HostFailure {
  if (stderr.includes('Operation not supported'))
    return new HostFailure(
      `cannot ${what} the ACL of ${path}: its file system has no ACLs; declare \`acl\` for a path on another one`,
    );
  const why = timedOut ? 'the program took too long' : truncated ? 'it has too many entries' : stderr.trim();
  return new HostFailure(`cannot ${what} the ACL of ${path}: ${why.slice(0, 500) || 'no reason given'}`);
}
