import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Other users have access to a file or directory that holds keys. */
class LoosePermissionsError extends Error {
  constructor(path: string, mode: number, wanted: string) {
    const found = (mode & 0o777).toString(8).padStart(4, '0');
    super(`${path} has mode ${found}, which gives other users access to keys; run: chmod ${wanted} ${path}`);
    this.name = 'LoosePermissionsError';
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/**
 * Creates the directory with mode 0700 if it is missing, and its parents.
 * @throws LoosePermissionsError if it exists and group or others have any permission
 */
export function ensurePrivateDirectory(path: string): void {
  makeDirectory(resolve(path));
  const { mode } = statSync(path);
  if ((mode & 0o077) !== 0) throw new LoosePermissionsError(path, mode, '0700');
}

/**
 * Creates one level at a time. The recursive `mkdir` of Node never returns if the system reports that a name is missing
 * below a directory that exists, as /proc does.
 */
function makeDirectory(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw new Error(`${path} is not a directory`);
  if (dirname(path) !== path) makeDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process created it in the meantime.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * @param forbidden bits of the mode that must not be set; by default, every permission of group and others
 * @returns null if there is no such file
 * @throws LoosePermissionsError if a forbidden bit is set
 */
export function readPrivateFile(path: string, forbidden = 0o077): string | null {
  try {
    const { mode } = statSync(path);
    if ((mode & forbidden) !== 0) throw new LoosePermissionsError(path, mode, '0600');
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Writes a file with mode 0600 and syncs it: after a power cut the file is old or new, never mixed.
 * @param existing whether to `replace` an existing file, or `keep` it and throw an error with code EEXIST
 */
export function writePrivateFile(path: string, text: string, existing: 'replace' | 'keep'): void {
  const directory = dirname(path);
  const temporary = join(directory, `.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = openSync(temporary, 'wx', 0o600);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (existing === 'replace') renameSync(temporary, path);
    else linkSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  // Windows cannot sync a directory.
  if (process.platform === 'win32') return;
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Removes a file if it exists. */
export const removePrivateFile = (path: string): void => rmSync(path, { force: true });

/** Returns the user ID of the directory's owner; null if this process is the owner. */
export function otherOwner(path: string): number | null {
  const { uid } = statSync(path);
  return process.geteuid === undefined || uid === process.geteuid() ? null : uid;
}
