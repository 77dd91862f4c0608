import { statSync } from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';
import { checkPath } from './path-walk.ts';

const nothingThere: readonly (string | null)[] = ['ENOENT', 'ENOTDIR', 'ELOOP'];

/**
 * Reports whether a path exists. Follows symbolic links, as `test -e` does: a dangling or circular link does not exist.
 * @throws HostFailure if this cannot be determined, for example below a directory that the agent may not read
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
