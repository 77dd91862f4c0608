import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { errnoOf, HostFailure } from '../failure.ts';
import { aclProbe, aclStays, hasDefaultAcl, removeAcls } from './acl.ts';
import { isWidenedByAcl } from './decide-ownership.ts';
import type { Ownership } from './inspect.ts';
import { makeDirectory } from './make-directory.ts';
import type { OpenDirectory } from './path-walk.ts';

/**
 * Returns the temporary name for `name`. Always the same name, so that the agent finds files left by an earlier process
 * that was killed. Starts with a dot and has an extension, so that programs that read whole directories skip it.
 */
export const temporaryName = (name: string): string => `.muster-${hash('sha256', name, 'hex').slice(0, 20)}.tmp`;

/** Temporary path of a new object, which is then renamed to its final name. */
export interface TemporaryPath {
  /** Path for calls to `node:fs`. `path` is the path for messages and programs. */
  readonly file: string;
  readonly path: string;
}

/**
 * Runs `action` with a temporary path for a new object, which will become `name` in `parent` with the given owner and
 * permissions. If the object must not inherit the default ACL of `parent`, the temporary path is in a private directory
 * without a default ACL.
 * @param inherits whether the object gets the default ACL of `parent`
 * @throws HostFailure if the default ACL cannot be removed and would grant more than `target`
 */
export async function withTemporaryPath<T>(
  parent: OpenDirectory,
  name: string,
  target: Ownership,
  inherits: boolean,
  action: (place: TemporaryPath) => Promise<T>,
): Promise<T> {
  const temporary = temporaryName(name);
  const path = `${parent.path}/${temporary}`;
  const inParent = () => action({ file: parent.child(temporary), path });
  if (inherits) return inParent();
  if (parent.trusted && !passesAcl(parent, name)) return inParent();
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
 * Creates one directory as `makeDirectory` does, but without a default ACL that it must not inherit.
 * @throws HostFailure as `withTemporaryPath` does, or the error from mkdir
 */
export async function makeDirectoryIn(
  parent: OpenDirectory,
  name: string,
  target: Ownership,
  inherits: boolean,
): Promise<void> {
  if (inherits) return makeDirectory(parent.child(name), target.mode);
  await withTemporaryPath(parent, name, target, false, async ({ file }) => {
    makeDirectory(file, target.mode);
    try {
      // Replaces an empty directory that another process created in the meantime.
      renameSync(file, parent.child(name));
    } catch (error) {
      if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'ENOTDIR') throw error;
      throw Object.assign(new Error(`${parent.path}/${name} exists`, { cause: error }), { code: 'EEXIST' });
    }
  });
}

/** Name of the new object in the private directory. */
const made = 'new';
const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Removes objects that a killed agent left behind. Never throws. */
export function removeTemporary(parent: OpenDirectory, name: string): void {
  const path = parent.child(temporaryName(name));
  try {
    unlinkSync(path);
  } catch (error) {
    // EISDIR on Linux and EPERM in POSIX mean that the path is a directory. Other errors mean that the path does not
    // exist or that the parent is not writable, which the caller's next call reports.
    if (errnoOf(error) === 'EISDIR' || errnoOf(error) === 'EPERM') removePrivate(path);
  }
}

function removePrivate(path: string): void {
  const quietly = (remove: () => void): void => {
    try {
      remove();
    } catch {
      // The path does not exist, has another type, or belongs to another user.
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

/** Reports whether new objects in a directory inherit an ACL. */
function passesAcl(parent: OpenDirectory, name: string): boolean {
  const fd = openPrivate(parent, name);
  try {
    return hasDefaultAcl(`/proc/${process.pid}/fd/${fd}`);
  } finally {
    closeSync(fd);
    removeTemporary(parent, name);
  }
}

/**
 * Creates a directory that only the agent's user can enter. The group mask is empty, so that an inherited ACL grants no
 * access.
 */
function openPrivate(parent: OpenDirectory, name: string): number {
  const path = parent.child(temporaryName(name));
  const inTheWay = () =>
    new HostFailure(`another process keeps creating ${parent.path}/${temporaryName(name)}; stop it, and apply again`);
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
    // Checks the directory, because the parent's owner could have replaced it.
    if (isPrivate(fd)) return fd;
    closeSync(fd);
    throw inTheWay();
  }
}
