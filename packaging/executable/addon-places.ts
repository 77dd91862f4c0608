import { lstatSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';

/** What is known of a folder, its links followed, and of each above it. */
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
 * Who can put another folder in the place of one of these can have this process run what they like, whatever the mode of
 * the innermost: what is loaded is checked and then loaded by its path.
 * @param steps the folder first, then each above it
 * @param uid whose process this is
 * @returns which others can change, and what to do; null: none
 */
export function unguarded(steps: readonly Step[], uid: number): string | null {
  for (const [above, { path, uid: owner, gid, mode }] of steps.entries()) {
    if (owner !== uid && owner !== 0) return `${path} is of another user (${owner})`;
    // There others can make things and not take away what is somebody else's.
    if (above > 0 && (mode & sticky) !== 0) continue;
    // A group of one's own, which many systems give to each user.
    const byGroup = (mode & writableByGroup) !== 0 && !(gid === owner && owner !== 0);
    if (byGroup || (mode & writableByAll) !== 0) return `${path} can be written by others (chmod go-w)`;
  }
  return null;
}

/** A folder and all above it, as it really is: links that lead there are none of it. What is not there yet is passed over. */
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
