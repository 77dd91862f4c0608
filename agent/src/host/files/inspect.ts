import { isUtf8 } from 'node:buffer';
import { createHash, hash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  read,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs';
import { errnoOf, HostFailure, hostFailure } from '../failure.ts';
import type { OpenDirectory, PathWalk } from './path-walk.ts';

/** The object at a path, observed without following a link or changing anything. */
export type Inspected =
  | { type: 'absent' }
  | ({ type: 'file'; size: number; content: FileContent | null } & Standing)
  | ({ type: 'directory' } & Standing)
  | ({ type: 'symlink'; target: string } & Standing)
  | ({ type: 'other'; kind: string } & Standing);

/**
 * `stamp` consists of the device, the inode, and the time of the last change. `movable`: an unprivileged user may have
 * moved the object here, so it may not be the intended object.
 */
type Standing = Ownership & { stamp: string; movable?: true };

export interface Ownership {
  uid: number;
  gid: number;
  /** Permission bits, 0 to 0o7777. */
  mode: number;
}

export interface FileContent {
  /**
   * Hash of the content; null for a file that is too large to hold in memory. `hashLarge` hashes such a file if its
   * size does not already differ.
   */
  sha256: string | null;
  size: number;
  /** The content; null for a file that is too large to hold in memory. */
  bytes: Buffer | null;
}

/**
 * Maximum size of content that is held in memory, in bytes. Larger content is compared by size and then by hash, and
 * does not appear in diffs.
 */
export const maxContentInMemory = 4 * 1024 * 1024;

/**
 * Inspects a path.
 * @param wantContent whether to read the content of a file. Files larger than `maxContentInMemory` are not read, because
 *   reading blocks the agent, and other users may control the size.
 * @throws HostFailure if the path walk refuses the path, or the object cannot be read
 */
export function inspect(walk: PathWalk, path: string, wantContent: boolean): Inspected {
  return (
    walk.within(path, 'null', (parent, name) => inspectRetrying(parent, name, path, wantContent)) ?? { type: 'absent' }
  );
}

/** Another process replaced the object between the lookup and the open. */
class Replaced extends HostFailure {}

/**
 * Maximum number of attempts to inspect a path. An attempt fails if another process replaces the file between the
 * lookup and the open.
 */
const maxAttempts = 4;

function inspectRetrying(parent: OpenDirectory, name: string, path: string, wantContent: boolean): Inspected {
  for (let attempt = 1; ; attempt++) {
    try {
      return inspectOnce(parent, name, path, wantContent);
    } catch (error) {
      if (!(error instanceof Replaced) || attempt === maxAttempts) throw error;
    }
  }
}

function inspectOnce(parent: OpenDirectory, name: string, path: string, wantContent: boolean): Inspected {
  try {
    const stats = lstatSync(parent.child(name), { throwIfNoEntry: false });
    if (stats === undefined) return { type: 'absent' };
    const ownership = standingOf(stats, parent);
    if (stats.isSymbolicLink()) return { type: 'symlink', target: readlinkSync(parent.child(name)), ...ownership };
    if (stats.isDirectory()) return { type: 'directory', ...ownership };
    if (!stats.isFile()) return { type: 'other', kind: kindOf(stats), ...ownership };
    // The other name may be another user's file, linked here by a user who can write to this directory.
    if (stats.nlink > 1 && !parent.exclusive)
      throw new HostFailure(`${path} has more than one hard link, in a directory that an unprivileged user can change`);
    const content = wantContent ? readContent(parent, name, stats) : null;
    return { type: 'file', size: content?.size ?? stats.size, content, ...ownership };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return { type: 'absent' };
    throw hostFailure(error, `read ${path}`);
  }
}

const stampOf = (stats: Stats): string => `${stats.dev}:${stats.ino}:${stats.ctimeMs}`;
const standingOf = (stats: Stats, within: OpenDirectory): Standing => ({
  uid: stats.uid,
  gid: stats.gid,
  mode: stats.mode & 0o7777,
  stamp: stampOf(stats),
  ...(within.trusted ? {} : { movable: true }),
});

/** Returns the inode number of an inspected object, which survives renames and changes. */
export const inodeOf = ({ stamp }: { stamp: string }): string => stamp.split(':')[1] ?? '';

/**
 * Reports whether this is the inspected file or directory, with the same owner and permissions. Its content may differ,
 * because files such as logs grow constantly.
 */
export const isStill = (stats: Stats, seen: Inspected): boolean =>
  seen.type !== 'absent' &&
  seen.stamp.startsWith(`${stats.dev}:${stats.ino}:`) &&
  stats.uid === seen.uid &&
  stats.gid === seen.gid &&
  (stats.mode & 0o7777) === seen.mode;

export function inspectOpen(directory: OpenDirectory): Extract<Inspected, { type: 'directory' }> {
  const fd = openSync(`${directory.self}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return { type: 'directory', ...standingOf(fstatSync(fd), directory) };
  } finally {
    closeSync(fd);
  }
}

/**
 * Checks that the object to be replaced is the object that was inspected.
 * @param seen result of `inspect`
 * @throws HostFailure if the path now refers to another object
 */
export function expectUnchanged(parent: OpenDirectory, name: string, seen: Inspected): void {
  const stats = lstatSync(parent.child(name), { throwIfNoEntry: false });
  const same =
    stats === undefined
      ? seen.type === 'absent'
      : seen.type === 'symlink'
        ? stats.isSymbolicLink() && readlinkSync(parent.child(name)) === seen.target
        : seen.type !== 'absent' && seen.type !== 'directory' && stampOf(stats) === seen.stamp;
  if (!same)
    throw new HostFailure(`${parent.path}/${name} was changed by another process during the apply; apply again`);
}

/**
 * Opens an inspected file for reading.
 * @throws HostFailure if the path now refers to another object
 */
export async function withFile<T>(
  walk: PathWalk,
  path: string,
  seen: Inspected,
  action: (fd: number) => Promise<T>,
): Promise<T> {
  const result = walk.within(path, 'null', async (parent, name) => {
    let fd: number;
    try {
      fd = openSync(parent.child(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      throw hostFailure(error, `read ${path}`);
    }
    try {
      // Checks the open file, because the path may already lead to a different one.
      if (seen.type !== 'file' || stampOf(fstatSync(fd)) !== seen.stamp)
        throw new HostFailure(`${path} was changed by another process during the apply; apply again`);
      return await action(fd);
    } catch (error) {
      throw hostFailure(error, `read ${path}`);
    } finally {
      closeSync(fd);
    }
  });
  if (result === null) throw new HostFailure(`${path} was removed while it was being read; try again`);
  return result;
}

/** Opens a file that was just inspected, and checks that it is still the same file. */
function openSeen(parent: OpenDirectory, name: string, seen: Stats): number {
  const replaced = () => new Replaced(`${parent.path}/${name} was replaced while it was being read; try again`);
  let fd: number;
  try {
    fd = openSync(parent.child(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    // The object is a link or a socket.
    if (errnoOf(error) === 'ELOOP' || errnoOf(error) === 'ENXIO') throw replaced();
    throw error;
  }
  const now = fstatSync(fd);
  if (now.isFile() && now.ino === seen.ino && now.dev === seen.dev) return fd;
  closeSync(fd);
  throw replaced();
}

function readContent(parent: OpenDirectory, name: string, seen: Stats): FileContent {
  const fd = openSeen(parent, name, seen);
  try {
    if (seen.size > maxContentInMemory) return { sha256: null, size: seen.size, bytes: null };
    const bytes = readToEnd(fd, seen.size);
    return contentOf(bytes);
  } finally {
    closeSync(fd);
  }
}

export const contentOf = (bytes: Buffer): FileContent & { sha256: string; bytes: Buffer } => ({
  sha256: hash('sha256', bytes, 'hex'),
  size: bytes.length,
  bytes,
});

/** Reads to the end of the file, even if the file grows during the read. */
function readToEnd(fd: number, expected: number): Buffer {
  let buffer = Buffer.allocUnsafe(expected + 1);
  let length = 0;
  for (;;) {
    const read = readSync(fd, buffer, length, buffer.length - length, null);
    length += read;
    if (read === 0) return buffer.subarray(0, length);
    if (length < buffer.length) continue;
    if (length > maxContentInMemory * 2)
      throw new HostFailure('the file grows faster than it can be read; stop the program that writes to it');
    const larger = Buffer.allocUnsafe(buffer.length * 2);
    buffer.copy(larger, 0, 0, length);
    buffer = larger;
  }
}

/**
 * Hashes an inspected file in chunks, so that the agent can do other work in between.
 * @returns null if the size has changed
 * @throws HostFailure if the path now refers to another object
 */
export function hashLarge(walk: PathWalk, path: string, seen: Inspected, size: number): Promise<string | null> {
  return withFile(walk, path, seen, async (fd) => {
    const digest = createHash('sha256');
    let length = 0;
    for await (const piece of pieces(fd)) {
      length += piece.length;
      if (length > size) return null;
      digest.update(piece);
    }
    return length === size ? digest.digest('hex') : null;
  });
}

/** Reads an open file from its start, outside the event loop. A chunk is valid until the next one is requested. */
export async function* pieces(fd: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(256 * 1024);
  for (let position = 0; ; ) {
    const length = await new Promise<number>((resolve, reject) =>
      read(fd, buffer, 0, buffer.length, position, (error, count) => (error === null ? resolve(count) : reject(error))),
    );
    if (length === 0) return;
    yield buffer.subarray(0, length);
    position += length;
  }
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'FIFO';
  if (stats.isSocket()) return 'socket';
  if (stats.isBlockDevice()) return 'block device';
  if (stats.isCharacterDevice()) return 'character device';
  return 'special file';
}

/** Returns the names in an open directory; null if there are more than `limit`. Another user may add names endlessly. */
export function namesUpTo<N = string>(directory: { readSync(): { name: N } | null }, limit: number): N[] | null {
  const names: N[] = [];
  for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
    if (names.length === limit) return null;
    names.push(entry.name);
  }
  return names;
}

/**
 * Opens a directory, and returns the result of `read`.
 * @returns `absent` if the directory does not exist
 * @throws HostFailure
 */
function inDirectory<T>(walk: PathWalk, path: string, absent: T, read: (directory: OpenDirectory) => T): T {
  const directory = walk.open(path, 'null');
  if (directory === null) return absent;
  try {
    return read(directory);
  } catch (error) {
    throw hostFailure(error, `list ${path}`);
  } finally {
    walk.release(directory);
  }
}

/** Returns the names in a directory as bytes, because some may not be UTF-8; null if there are more than `limit`. */
function namesIn(directory: OpenDirectory, limit: number): Buffer[] | null {
  const open = opendirSync(directory.self, { encoding: 'buffer' as BufferEncoding });
  try {
    return namesUpTo<Buffer>(open as unknown as { readSync(): { name: Buffer } | null }, limit);
  } finally {
    open.closeSync();
  }
}

/**
 * Lists the names in a directory, sorted.
 * @returns null if there are more than `limit`
 */
export const listDirectory = (walk: PathWalk, path: string, limit: number): string[] | null =>
  inDirectory(walk, path, [], (directory) => namesIn(directory, limit)?.map(String).sort() ?? null);

export interface ListedEntry extends Ownership {
  name: string;
  type: 'file' | 'directory' | 'other';
  device: number;
}

/**
 * Lists the entries of a directory with their status, sorted by name. Does not follow links.
 * @returns the entries, the device of the directory, and the names without a status, because they are not UTF-8 or the
 *   file system refuses it even to root (FUSE); null if there are more than `limit`
 */
export function statusesIn(
  walk: PathWalk,
  path: string,
  limit: number,
): { device: number; entries: ListedEntry[]; unknown: string[] } | null {
  const absent = { device: 0, entries: [], unknown: [] };
  return inDirectory<ReturnType<typeof statusesIn>>(walk, path, absent, (directory) => {
    const names = namesIn(directory, limit);
    if (names === null) return null;
    const unknown: string[] = [];
    const entries = names
      .map((bytes) => ({ name: bytes.toString(), isText: isUtf8(bytes) }))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
      .flatMap(({ name, isText }): ListedEntry[] => {
        const stats = isText ? statusIn(directory, name) : 'unknown';
        if (stats === 'unknown') unknown.push(name);
        if (stats === undefined || stats === 'unknown') return [];
        const { uid, gid, mode, dev: device } = stats;
        const type = stats.isDirectory() ? 'directory' : stats.isFile() ? 'file' : 'other';
        return [{ name, type, device, uid, gid, mode: mode & 0o7777 }];
      });
    return { device: lstatSync(`${directory.self}/.`).dev, entries, unknown };
  });
}

function statusIn(directory: OpenDirectory, name: string): Stats | 'unknown' | undefined {
  try {
    return lstatSync(directory.child(name), { throwIfNoEntry: false });
  } catch (error) {
    if (errnoOf(error) === 'EACCES' || errnoOf(error) === 'ENOTCONN') return 'unknown';
    throw error;
  }
}

/** Reports whether the inspected directory still exists and is empty. */
export function isEmptyDirectory(
  walk: PathWalk,
  path: string,
  seen: Extract<Inspected, { type: 'directory' }>,
): boolean {
  return inDirectory(
    walk,
    path,
    false,
    // Reads only one name, because a user may have added many.
    (directory) => inspectOpen(directory).stamp === seen.stamp && namesIn(directory, 0) !== null,
  );
}
