import { rmdirSync, unlinkSync } from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';
import type { OpenDirectory } from './path-walk.ts';
import { removeTemporary } from './temporary-path.ts';

/** Removes a file or link if it exists. */
export function removeFile(parent: OpenDirectory, name: string): void {
  try {
    removeTemporary(parent, name);
    unlinkSync(parent.child(name));
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw hostFailure(error, `remove ${parent.path}/${name}`);
  }
}

/**
 * Removes a directory if it is empty.
 * @returns whether the directory no longer exists
 */
export function removeDirectory(parent: OpenDirectory, name: string): boolean {
  try {
    rmdirSync(parent.child(name));
    return true;
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT') return true;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw hostFailure(error, `remove the directory ${parent.path}/${name}`);
  }
}
