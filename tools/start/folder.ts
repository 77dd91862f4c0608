import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder for its owner alone, and its missing parents. Creates each level separately: Node's recursive mkdir
 * never returns if the system reports a missing folder although the parent exists, as in /proc.
 * @param path absolute
 * @throws the system's error, also if the path exists and is not a folder
 */
export function makeFolder(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw Object.assign(new Error(`${path} is not a folder`), { code: 'ENOTDIR' });
  if (dirname(path) !== path) makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}
