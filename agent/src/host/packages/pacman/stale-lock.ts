import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, type Stats, statSync } from 'node:fs';
import { errnoOf, hostFailure } from '../../failure.ts';
import { O_PATH, PathWalk } from '../../files/path-walk.ts';
import { removeFile } from '../../files/remove.ts';
import { linkTarget } from '../../read-system.ts';

/** The default; a machine with another `DBPath` keeps a stale lock, which pacman reports. */
const usualLock = '/var/lib/pacman/db.lck';

/**
 * Removes pacman's lock if no process holds the file open, as after a power failure. pacman keeps the file open as
 * long as it holds the lock, and never removes a lock that another pacman left. Keeps a file that pacman did not create,
 * such as one with which an administrator prevents changes.
 * @throws HostFailure if the lock cannot be read or removed
 */
export function removeStaleLock(lockFile = usualLock, isHeld = isOpenSomewhere): void {
  const walk = new PathWalk();
  try {
    walk.within(lockFile, 'null', (parent, name) => {
      const path = parent.child(name);
      const lock = openLock(path);
      if (lock === null) return;
      try {
        const found = fstatSync(lock);
        if (!isOfPacman(found) || isHeld(found, name)) return;
        // Others may have replaced the lock since. While `lock` is open, no new file gets its inode number.
        const now = lstatSync(path, { throwIfNoEntry: false });
        if (now !== undefined && isSame(now, found)) removeFile(parent, name);
      } finally {
        closeSync(lock);
      }
    });
  } finally {
    walk.close();
  }
}

function openLock(path: string): number | null {
  try {
    return openSync(path, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw hostFailure(error, 'read the lock of pacman');
  }
}

/** pacman creates an empty file with mode 0. */
const isOfPacman = (stats: Stats): boolean => stats.isFile() && stats.size === 0 && (stats.mode & 0o777) === 0;

const isSame = (a: Stats, b: Stats): boolean => a.dev === b.dev && a.ino === b.ino;

/** Reports whether a process has the file open. True if that cannot be determined. */
function isOpenSomewhere(lock: Stats, name: string): boolean {
  const pids = entriesOf('/proc')?.filter((entry) => /^\d+$/.test(entry)) ?? [];
  if (!pids.includes(String(process.pid))) return true;
  return pids.some((pid) => {
    if (Number(pid) === process.pid) return false;
    const directory = `/proc/${pid}/fd`;
    const open = entriesOf(directory);
    // The path of the file may contain links, so only its name decides which files to compare.
    return (
      open === null || open.some((fd) => isNamed(`${directory}/${fd}`, name) && isOpen(`${directory}/${fd}`, lock))
    );
  });
}

const isNamed = (link: string, name: string): boolean => linkTarget(link)?.endsWith(`/${name}`) === true;

function isOpen(link: string, lock: Stats): boolean {
  try {
    const stats = statSync(link, { throwIfNoEntry: false });
    return stats !== undefined && isSame(stats, lock);
  } catch {
    return true;
  }
}

/** Returns the names in a directory; empty if its process has ended, and null if it cannot be read. */
function entriesOf(directory: string): string[] | null {
  try {
    return readdirSync(directory);
  } catch (error) {
    return ['ENOENT', 'ESRCH'].includes(errnoOf(error) ?? '') ? [] : null;
  }
}
