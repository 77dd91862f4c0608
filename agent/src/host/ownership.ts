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
} from 'node:fs';
import { HostFailure, hostFailure } from './failure.ts';
import type { Ownership } from './inspect.ts';
import type { OpenDirectory } from './path-walk.ts';

/**
 * Owner and permissions of a file that stays: on the open file, so that nothing swapped in its place gets them.
 * On disk when it resolves.
 * @throws HostFailure
 */
export async function setFileOwnership(parent: OpenDirectory, name: string, target: Ownership): Promise<void> {
  const path = `${parent.path}/${name}`;
  try {
    const fd = openSync(parent.child(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile() || (stats.nlink > 1 && !parent.exclusive))
        throw new HostFailure(`${path} was replaced meanwhile; apply again`);
      // The owner first: changing it takes the set-user-id bit away.
      if (stats.uid !== target.uid || stats.gid !== target.gid) fchownSync(fd, target.uid, target.gid);
      fchmodSync(fd, target.mode);
      await new Promise<void>((resolve, reject) => fsync(fd, (error) => (error === null ? resolve() : reject(error))));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw hostFailure(error, `set the owner and permissions of ${path}`);
  }
}

/** Owner of a symbolic link itself. */
export function setLinkOwner(parent: OpenDirectory, name: string, uid: number, gid: number): void {
  try {
    lchownSync(parent.child(name), uid, gid);
  } catch (error) {
    throw hostFailure(error, `set the owner of ${parent.path}/${name}`);
  }
}

/** Owner and permissions of a directory that is held open. */
export function directoryOwnership(directory: OpenDirectory): Ownership {
  const fd = openSync(`${directory.self}/.`, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const { uid, gid, mode } = fstatSync(fd);
    return { uid, gid, mode: mode & 0o7777 };
  } finally {
    closeSync(fd);
  }
}

export function setDirectoryOwnership(directory: OpenDirectory, target: Ownership): void {
  const now = directoryOwnership(directory);
  const changesHands = now.uid !== target.uid || now.gid !== target.gid;
  // The owner first: changing it takes bits away.
  if (changesHands) chownSync(directory.self, target.uid, target.gid);
  if (changesHands || now.mode !== target.mode) chmodSync(directory.self, target.mode);
}
