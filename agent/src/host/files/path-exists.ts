import { statSync } from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';
import { checkPath } from './path-walk.ts';

const nothingThere: readonly (string | null)[] = ['ENOENT', 'ENOTDIR', 'ELOOP'];

/**
 * Whether a path exists. Follows symbolic links, as `test -e` does: the path of a dangling or circular link does not
 * exist.
 * @throws HostFailure when this cannot be determined, such as below a directory that may not be read
 */
export function pathExists(path: string): boolean {
  try {
    if (path !== '/') checkPath(path);
    statSync(path);
    return true;
  } catch (error) {
    if (nothingThere.includes(errnoOf(error))) return false;
    throw hostFailure(error, `determine whether ${path} exists`);
  }
}
