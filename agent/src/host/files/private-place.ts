import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { errnoOf, HostFailure } from '../failure.ts';
import { aclProbe, aclStays, hasDefaultAcl, removeAcls } from './acl.ts';
import { isWidenedByAcl, mayInheritAcl } from './decide-ownership.ts';
import type { Ownership } from './inspect.ts';
import { makeDirectory } from './make-directory.ts';
import type { OpenDirectory } from './path-walk.ts';

/**
 * Name of what stands for `name` while it is made. Always the same one, so that what a killed agent left behind is
 * found; starts with a dot and holds one, so that programs that read a whole directory skip it.
 */
export const temporaryName = (name: string): string => `.muster-${hash('sha256', name, 'hex').slice(0, 20)}.tmp`;

/** Where something new is made before it is renamed to its place. */
export interface Place {
  /** Its path for the calls of `node:fs`, and for people and programs. */
  readonly file: string;
  readonly path: string;
}

/**
 * Runs `action` with a place for something new that ends up as `name` in `parent` with this owner and these permissions.
 * In a directory whose default ACL must not reach it, that is a directory that only the agent's user can enter, with no
 * default ACL.
 * @throws HostFailure when the default ACL cannot be removed and would give somebody more than `target` says
 */
export async function withPlace<T>(
  parent: OpenDirectory,
  name: string,
  target: Ownership,
  action: (place: Place) => Promise<T>,
): Promise<T> {
  const temporary = temporaryName(name);
  const path = `${parent.path}/${temporary}`;
  if (mayInheritAcl(parent, target)) return action({ file: parent.child(temporary), path });
  const fd = openPrivate(parent, name);
  const directory = `/proc/${process.pid}/fd/${fd}`;
  try {
    if (hasDefaultAcl(directory) && !(await removeAcls(directory, 'directory', 0o700)) && isWidenedByAcl(target))
      throw aclStays(parent.path, `${parent.path}/${name}`, target);
    return await action({ file: `${directory}/${made}`, path: `${path}/${made}` });
  } finally {
    closeSync(fd);
    removeTemporary(parent, name);
  }
}

/**
 * Makes one directory with these permissions, as `makeDirectory` does, without a default ACL that must not reach it.
 * @throws HostFailure as `withPlace`, or the error of mkdir
 */
export async function makeDirectoryIn(parent: OpenDirectory, name: string, target: Ownership): Promise<void> {
  if (mayInheritAcl(parent, target)) return makeDirectory(parent.child(name), target.mode);
  await withPlace(parent, name, target, async ({ file }) => {
    makeDirectory(file, target.mode);
    try {
      // An empty directory that somebody made meanwhile gives way.
      renameSync(file, parent.child(name));
    } catch (error) {
      if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'ENOTDIR') throw error;
      throw Object.assign(new Error(`${parent.path}/${name} is there`, { cause: error }), { code: 'EEXIST' });
    }
  });
}

/** Name of what is made, in the private directory. */
const made = 'new';
const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Takes away what a killed agent may have left. Never throws. */
export function removeTemporary(parent: OpenDirectory, name: string): void {
  const path = parent.child(temporaryName(name));
  try {
    unlinkSync(path);
  } catch (error) {
    // Linux says EISDIR, POSIX EPERM. Otherwise it is not there, or the directory cannot be written to, which the caller
    // finds out soon enough.
    if (errnoOf(error) === 'EISDIR' || errnoOf(error) === 'EPERM') removePrivate(path);
  }
}

function removePrivate(path: string): void {
  const quietly = (remove: () => void): void => {
    try {
      remove();
    } catch {
      // It is not there, or is another kind of thing, or somebody else's.
    }
  };
  quietly(() => {
    const fd = openSync(path, directoryFlags);
    try {
      if (!isPrivate(fd)) return;
      for (const left of [made, aclProbe]) {
        quietly(() => unlinkSync(`/proc/self/fd/${fd}/${left}`));
        quietly(() => rmdirSync(`/proc/self/fd/${fd}/${left}`));
      }
    } finally {
      closeSync(fd);
    }
  });
  quietly(() => rmdirSync(path));
}

function isPrivate(fd: number): boolean {
  const { uid, mode } = fstatSync(fd);
  return uid === process.geteuid?.() && (mode & 0o077) === 0;
}

/** Makes a directory that only the agent's user can enter, whatever ACL it inherits: with no permission of the group, none of its entries gives any. */
function openPrivate(parent: OpenDirectory, name: string): number {
  const path = parent.child(temporaryName(name));
  const inTheWay = () => new HostFailure(`somebody keeps creating ${parent.path}/${temporaryName(name)}`);
  for (let attempt = 0; ; attempt++) {
    try {
      makeDirectory(path, 0o700);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
      if (attempt === 3) throw inTheWay();
      removeTemporary(parent, name);
      continue;
    }
    const fd = openSync(path, directoryFlags);
    // The parent's owner can put another directory in its place.
    if (isPrivate(fd)) return fd;
    closeSync(fd);
    throw inTheWay();
  }
}
