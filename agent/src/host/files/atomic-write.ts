import { createHash } from 'node:crypto';
import { closeSync, constants, fsync, fsyncSync, openSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { errnoOf, HostFailure, hostFailure } from '../failure.ts';
import { writeAll } from '../write-all.ts';
import { type Acl, lacksAclPrograms, permissionsWithoutAcl, readAcl, writeKeptAcl } from './acl-entries.ts';
import { asCreated, mayInheritAcl } from './decide-ownership.ts';
import { type Inspected, pieces } from './inspect.ts';
import { beforeAcl, setLinkOwner, setOpenOwnership } from './ownership.ts';
import type { OpenDirectory } from './path-walk.ts';
import { removeTemporary, temporaryName, withTemporaryPath } from './temporary-path.ts';

export interface NewFile {
  /** `openFd` is an open file to copy, which must have this hash and size. */
  content: { bytes: Uint8Array } | { copyOf: string } | { openFd: number; sha256: string; size: number };
  uid: number;
  gid: number;
  /** Permission bits. */
  mode: number;
  /**
   * Sets the ACL of the open file, given its path below /proc, and thereby the group permissions, which are empty until
   * then. If it throws, nothing changes.
   */
  finish?: ((open: string) => Promise<void>) | undefined;
  /**
   * The inspected file that this one replaces. Its ACL is kept if the owner stays the same, except if the file belongs
   * to root and another user may have moved it to the path.
   */
  keepsAclOf?: Inspected | undefined;
  /** The inspected file that this one replaces, if `mode` is not declared and is taken from that file. */
  keepsModeOf?: Inspected | undefined;
  /** Called with the path of the finished temporary file, just before the rename. If it throws, nothing changes. */
  beforeRename?: (temporaryPath: string) => Promise<void>;
}

/**
 * Replaces a file atomically: at any time, the path leads either to the complete old file or to the complete new file
 * with its owner and permissions. Does not sync the directory; the caller does that after its last write.
 * @throws HostFailure if the write fails; the file is then unchanged
 */
export async function writeFileAtomically(parent: OpenDirectory, name: string, given: NewFile): Promise<void> {
  const target = `${parent.path}/${name}`;
  try {
    const kept = keepsAcl(given) ? await aclOf(parent, name) : null;
    const file = { ...given, mode: kept === null ? await modeWithoutAcl(parent, name, given) : given.mode };
    // A file without an ACL must not inherit one from its directory when its content is replaced.
    const losesInherited =
      file.finish !== undefined || (keepsAcl(file) && kept === null && file.uid === asCreated(0).uid);
    const inherits = mayInheritAcl(parent, file) && !losesInherited;
    await withTemporaryPath(parent, name, file, inherits, async (temporary) => {
      const fd = openTemporary(temporary.file);
      try {
        if ('bytes' in file.content) writeAll(fd, file.content.bytes);
        else if ('copyOf' in file.content) await copyFile(file.content.copyOf, `/proc/self/fd/${fd}`);
        else await copyVerified(file.content, fd, target);
        setOpenOwnership(fd, kept === null && file.finish === undefined ? file : beforeAcl(file, null));
        if (kept !== null) await writeKeptAcl(`/proc/${process.pid}/fd/${fd}`, target, file.mode, kept);
        await file.finish?.(`/proc/${process.pid}/fd/${fd}`);
        await synced(fd);
      } finally {
        closeSync(fd);
      }
      await file.beforeRename?.(temporary.path);
      renameSync(temporary.file, parent.child(name));
    });
  } catch (error) {
    removeTemporary(parent, name);
    throw hostFailure(error, `write ${target}`);
  }
}

const keepsAcl = ({ keepsAclOf: found, uid }: NewFile): boolean =>
  found?.type === 'file' && found.uid === uid && (found.movable !== true || uid !== asCreated(0).uid);

/** Returns the ACL of a file; null if it has none, or if the machine has no program to read it. */
async function aclOf(parent: OpenDirectory, name: string): Promise<Acl | null> {
  if (lacksAclPrograms()) return null;
  const acl = await withOpen(parent, name, readAcl);
  return acl.entries.length === 0 ? null : acl;
}

/** Returns the permissions of a new file that does not keep the ACL of the file that it replaces. */
async function modeWithoutAcl(parent: OpenDirectory, name: string, { keepsModeOf, mode }: NewFile): Promise<number> {
  if (keepsModeOf?.type !== 'file') return mode;
  const own = await withOpen(parent, name, (open, path) => permissionsWithoutAcl(open, path, keepsModeOf.mode));
  return mode & ~(keepsModeOf.mode & ~own);
}

/** Calls a function with the path below /proc of an open file, and its path for messages. */
async function withOpen<T>(
  parent: OpenDirectory,
  name: string,
  use: (open: string, path: string) => Promise<T>,
): Promise<T> {
  const fd = openSync(parent.child(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return await use(`/proc/${process.pid}/fd/${fd}`, `${parent.path}/${name}`);
  } finally {
    closeSync(fd);
  }
}

/** Replaces a symbolic link atomically. */
export function writeSymlinkAtomically(
  parent: OpenDirectory,
  name: string,
  link: { target: string; uid: number; gid: number },
): void {
  const temporary = parent.child(temporaryName(name));
  try {
    removeTemporary(parent, name);
    symlinkSync(link.target, temporary);
    setLinkOwner(parent, temporaryName(name), 'new', link);
    renameSync(temporary, parent.child(name));
  } catch (error) {
    removeTemporary(parent, name);
    throw hostFailure(error, `create the symbolic link ${parent.path}/${name}`);
  }
}

/** Makes renames, new files, and removals in a directory durable. */
export function syncDirectory(directory: OpenDirectory): void {
  const fd = openSync(`${directory.self}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } catch (error) {
    throw hostFailure(error, `sync ${directory.path}`);
  } finally {
    closeSync(fd);
  }
}

const createFlags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

function openTemporary(path: string): number {
  for (let attempt = 0; ; attempt++) {
    try {
      return openSync(path, createFlags, 0o600);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
      if (attempt === 3) throw new HostFailure(`another process keeps creating ${path}; stop it, and apply again`);
      unlinkSync(path);
    }
  }
}

/** @throws HostFailure if the copied bytes have a different hash or size */
async function copyVerified(
  from: { openFd: number; sha256: string; size: number },
  to: number,
  path: string,
): Promise<void> {
  const digest = createHash('sha256');
  let length = 0;
  for await (const piece of pieces(from.openFd)) {
    length += piece.length;
    // Limits the copy, because another process may append to the file as fast as this loop reads.
    if (length > from.size) break;
    digest.update(piece);
    writeAll(to, piece);
  }
  if (length !== from.size || digest.digest('hex') !== from.sha256)
    throw new HostFailure(`${path} was changed by another process during the apply; apply again`);
}

/** Runs outside the event loop, because a slow disk must not block the link. */
export const synced = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fsync(fd, (error) => (error === null ? resolve() : reject(error))));
