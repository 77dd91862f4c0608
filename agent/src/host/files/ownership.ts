import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  lchownSync,
  openSync,
  readdirSync,
  type Stats,
} from 'node:fs';
import { HostFailure, hostFailure } from '../failure.ts';
import { aclStays, removeAcls } from './acl.ts';
import { permissionsWithoutAcl } from './acl-entries.ts';
import { isWidenedByAcl, losesAcls, setIdBits } from './decide-ownership.ts';
import { type Inspected, isStill, type Ownership } from './inspect.ts';
import { O_PATH, type OpenDirectory } from './path-walk.ts';

/**
 * Sets owners, groups, and permissions. `npm run check:arrows` forbids this in all other files. Each function works on
 * an open file and compares it with the inspected one, because the path may have come to refer to a different file.
 */

const replaced = (path: string): HostFailure => new HostFailure(`${path} was replaced during the apply; apply again`);

/**
 * Sets the owner and permissions of an open file, such as a temporary file or a terminal.
 * @throws the error from the system call
 */
export function setOpenOwnership(fd: number, target: Ownership): void {
  const { uid, gid } = fstatSync(fd);
  // Sets the permissions last, because the kernel clears set-ID bits and capabilities when the owner is set, even to
  // the same owner.
  if (uid !== target.uid || gid !== target.gid) fchownSync(fd, target.uid, target.gid);
  fchmodSync(fd, target.mode);
}

/**
 * Returns the ownership to set before an ACL is set. The group bits are the mask of a previous or inherited ACL, and
 * until the new ACL is set, its entries must not grant more than before. The bits are therefore kept, but cleared if
 * the group changes or if the file has a set-ID bit.
 * @param found null for a new object, or one that loses its ACL
 */
export function beforeAcl<T extends Ownership>(target: T, found: Stats | null): T {
  const setsId = (target.mode & setIdBits) !== 0 && found?.isFile() === true;
  const stays = found !== null && found.gid === target.gid && !setsId;
  return { ...target, mode: (target.mode & ~0o070) | (stays ? found.mode & 0o070 : 0) };
}

/** Ownership to set on an existing object. */
export interface NewOwnership extends Ownership {
  /** Whether `mode` is not declared, so that the mask of a removed ACL must not become the permissions of the group. */
  keepsMode?: boolean;
}

/**
 * Sets the owner and permissions of an open file or directory, and removes its ACLs.
 * @throws HostFailure if a directory keeps an ACL that grants more than declared
 */
async function setOwnershipWithoutAcls(
  fd: number,
  type: 'file' | 'directory',
  path: string,
  given: NewOwnership,
): Promise<void> {
  const open = `/proc/${process.pid}/fd/${fd}`;
  const now = fstatSync(fd).mode & 0o7777;
  const own = given.keepsMode === true ? await permissionsWithoutAcl(open, path, now) : now;
  const target = { ...given, mode: given.mode & ~(now & ~own) };
  // Removes ACLs before the owner changes. If this agent were killed in between, the next one would find the declared
  // owner and skip this step.
  const isRemoved = await removeAcls(open, type, own & 0o777);
  if (!isRemoved && isWidenedByAcl(target)) throw aclStays(path, path, target);
  fchownSync(fd, target.uid, target.gid);
  // Removes ACLs again, because the previous owner could set one until the owner changed.
  await removeAcls(open, type, target.mode & 0o777);
  fchmodSync(fd, target.mode);
}

/**
 * Sets the owner and permissions of an existing file. They are on disk when the promise resolves.
 * @param seen the inspected state on which `target` is based
 * @param finish sets the ACL of the open file, given its path below /proc, and thereby the group permissions
 * @throws HostFailure if the file, its owner, or its permissions are no longer the inspected ones
 */
export async function setFileOwnership(
  parent: OpenDirectory,
  name: string,
  seen: Inspected,
  target: NewOwnership,
  finish?: (open: string) => Promise<void>,
): Promise<void> {
  const path = `${parent.path}/${name}`;
  try {
    const fd = openSync(parent.child(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile() || !isStill(stats, seen) || (stats.nlink > 1 && !parent.exclusive)) throw replaced(path);
      const loses = losesAcls(stats, target);
      const first = finish === undefined ? target : beforeAcl(target, loses ? null : stats);
      if (loses) await setOwnershipWithoutAcls(fd, 'file', path, first);
      else setOpenOwnership(fd, first);
      await finish?.(`/proc/${process.pid}/fd/${fd}`);
      await new Promise<void>((resolve, reject) => fsync(fd, (error) => (error === null ? resolve() : reject(error))));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw hostFailure(error, `set the owner and permissions of ${path}`);
  }
}

/**
 * Sets the owner of a symbolic link itself.
 * @param seen the inspected state, or `new` if the agent has just created the link
 * @throws HostFailure if the path now refers to another object
 */
export function setLinkOwner(
  parent: OpenDirectory,
  name: string,
  seen: Inspected | 'new',
  owner: { uid: number; gid: number },
): void {
  const path = `${parent.path}/${name}`;
  try {
    const fd = openSync(parent.child(name), O_PATH | constants.O_NOFOLLOW);
    try {
      const stats = fstatSync(fd);
      const isTheOne = seen === 'new' ? stats.uid === process.geteuid?.() : isStill(stats, seen);
      if (!stats.isSymbolicLink() || !isTheOne) throw replaced(path);
      // The path through /proc leads to the open link itself and does not follow the link.
      if (stats.uid !== owner.uid || stats.gid !== owner.gid) chownSync(`/proc/self/fd/${fd}`, owner.uid, owner.gid);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw hostFailure(error, `set the owner of ${path}`);
  }
}

/**
 * Sets the owner and permissions of a directory.
 * @param seen the inspected state; `new`: the agent has just created the directory
 * @param isInherited whether the directory may have inherited an ACL that it must not have
 * @param finish sets the ACL of the open directory, given its path below /proc, and thereby the group permissions
 * @throws HostFailure if the path now refers to another directory, or the directory keeps an ACL that grants more than
 *   declared
 */
export async function setDirectoryOwnership(
  directory: OpenDirectory,
  seen: Inspected | 'new',
  target: NewOwnership,
  isInherited = false,
  finish?: (open: string) => Promise<void>,
): Promise<void> {
  const fd = openSync(`${directory.self}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const now = fstatSync(fd);
    // Refuses a directory with content, because a user who may rename entries here can put a directory owned by root in
    // its place. Only an empty one is harmless.
    const isTheOne =
      seen === 'new' ? now.uid === process.geteuid?.() && readdirSync(directory.self).length === 0 : isStill(now, seen);
    if (!isTheOne) throw replaced(directory.path);
    const ownerDiffers = now.uid !== target.uid || now.gid !== target.gid;
    const loses = isInherited || losesAcls(now, target);
    const first = finish === undefined ? target : beforeAcl(target, loses ? null : now);
    if (loses) await setOwnershipWithoutAcls(fd, 'directory', directory.path, first);
    else if (ownerDiffers || (now.mode & 0o7777) !== target.mode) setOpenOwnership(fd, first);
    await finish?.(`/proc/${process.pid}/fd/${fd}`);
  } finally {
    closeSync(fd);
  }
}

/**
 * Sets the owner and permissions of an entry whose parents only root can change, so that the path cannot lead to
 * another object.
 * @param mode null for a symbolic link, which has none
 * @throws the error from the system call
 */
export function setProtectedOwnership(
  path: string,
  { uid, gid, mode }: { uid: number; gid: number; mode: number | null },
): void {
  lchownSync(path, uid, gid);
  if (mode !== null) chmodSync(path, mode);
}

/**
 * Sets the mode of a directory to 0700.
 * @throws the error from the system call
 */
export function makeDirectoryPrivate(path: string): void {
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    chmodSync(`/proc/self/fd/${fd}`, 0o700);
  } finally {
    closeSync(fd);
  }
}
