import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder that only its owner enters, and those above it that are missing. Step by step: Node's own way never
 * comes back where the system says that a place is not there although its parent is, as /proc does.
 * @param path absolute
 * @throws the system's error, also when what is there is no folder
 */
export function makeFolder(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw Object.assign(new Error(`${path} is not a folder`), { code: 'ENOTDIR' });
  if (dirname(path) !== path) makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}
