import { lstatSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';

/** Owner and mode of a folder or of one of its ancestors, with links resolved. */
export interface Step {
  readonly path: string;
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

const writableByGroup = 0o020;
const writableByAll = 0o002;
const sticky = 0o1000;

/**
 * Checks who can replace one of the given folders. A user who can replace an ancestor controls the code that this
 * process loads, even if the innermost folder is protected, because this process checks the file and then loads it by
 * its path.
 * @param steps the folder first, then each ancestor
 * @param uid this process's user
 * @returns which folder other users can change, and how to fix it; null if there is none
 */
export function unguarded(steps: readonly Step[], uid: number): string | null {
  for (const [above, { path, uid: owner, gid, mode }] of steps.entries()) {
    if (owner !== uid && owner !== 0) return `${path} belongs to another user (${owner})`;
    // In a sticky folder, other users can create entries but cannot remove this user's entries.
    if (above > 0 && (mode & sticky) !== 0) continue;
    // Many systems create a private group for each user.
    const byGroup = (mode & writableByGroup) !== 0 && !(gid === owner && owner !== 0);
    if (byGroup || (mode & writableByAll) !== 0) return `${path} can be written by others (chmod go-w)`;
  }
  return null;
}

/**
 * Returns the real path of a folder, and of each ancestor. Resolves symbolic links, and skips folders that do not
 * exist.
 */
export function stepsTo(folder: string): Step[] {
  let path = folder;
  while (lstatSync(path, { throwIfNoEntry: false }) === undefined && dirname(path) !== path) path = dirname(path);
  path = realpathSync(path);
  const steps: Step[] = [];
  for (;;) {
    const { uid, gid, mode } = lstatSync(path);
    steps.push({ path, uid, gid, mode });
    if (dirname(path) === path) return steps;
    path = dirname(path);
  }
}
