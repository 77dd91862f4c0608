import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder that only its owner can access, and its missing parents. Creates one level at a time, because Node's
 * recursive `mkdir` never returns if a file system such as /proc reports a missing folder although its parent exists.
 * @param path absolute
 * @throws the system's error, for example if the path exists and is not a folder
 */
export function makeFolder(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw Object.assign(new Error(`${path} is not a folder`), { code: 'ENOTDIR' });
  if (dirname(path) !== path) makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}
