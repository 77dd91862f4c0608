import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
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
import { syncPath } from './sync-path.ts';

/** Other users have access to a file or directory that contains keys. */
class LoosePermissionsError extends Error {
  constructor(path: string, mode: number, requiredMode: string) {
    const found = (mode & 0o777).toString(8).padStart(4, '0');
    super(`${path} has mode ${found}, which gives other users access to keys; run: chmod ${requiredMode} ${path}`);
    this.name = 'LoosePermissionsError';
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/**
 * Creates a directory with mode 0700, and its parents, if it does not exist.
 * @throws LoosePermissionsError if the directory exists, and group or others have any permission
 */
export function ensurePrivateDirectory(path: string): void {
  makeDirectory(resolve(path));
  const { mode } = statSync(path);
  if ((mode & 0o077) !== 0) throw new LoosePermissionsError(path, mode, '0700');
}

/**
 * Creates one level at a time, because Node's recursive `mkdir` never returns if `mkdir` fails with `ENOENT` below an
 * existing directory, as in /proc.
 */
function makeDirectory(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw new Error(`${path} is not a directory`);
  if (dirname(path) !== path) makeDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Ignores EEXIST, because another process has created the directory since the check.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * Reads a file that must be private.
 * @param forbidden mode bits that must not be set; by default, every permission for group and others
 * @returns null if the file does not exist
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
 * Writes a file with mode 0600 and syncs it. After a power failure, the file has either the old or the new content.
 * @param existing whether to `replace` an existing file, or `keep` it and throw an error with code EEXIST
 */
export function writePrivateFile(path: string, content: string | Uint8Array, existing: 'replace' | 'keep'): void {
  const directory = dirname(path);
  const temporary = join(directory, `.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = openSync(temporary, 'wx', 0o600);
    try {
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (existing === 'replace') renameSync(temporary, path);
    else linkSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  syncDirectory(directory);
}

/**
 * Creates a file with mode 0600 and syncs it. Works on file systems without hard links, and in directories that cannot
 * be listed. Never replaces a file, and follows no link at the path. Removes the file if it cannot be written.
 * @throws Error with code EEXIST if anything exists at the path
 */
export function createPrivateFile(path: string, content: string | Uint8Array): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  syncDirectory(dirname(path));
}

function syncDirectory(path: string): void {
  // Windows cannot sync a directory.
  if (process.platform === 'win32') return;
  try {
    syncPath(path);
  } catch (error) {
    // A directory that may be written but not read cannot be synced. The file is complete, and only its name may be lost.
    if (codeOf(error) !== 'EACCES') throw error;
  }
}

export const removePrivateFile = (path: string): void => rmSync(path, { force: true });

/** Returns the user ID of the directory's owner; null if this process is the owner. */
export function otherOwner(path: string): number | null {
  const { uid } = statSync(path);
  return process.geteuid === undefined || uid === process.geteuid() ? null : uid;
}
