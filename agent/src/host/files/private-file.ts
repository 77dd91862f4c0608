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
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { errnoOf } from '../failure.ts';

/** What only its owner may touch has looser permissions than that; starting would be unsafe. */
class LoosePermissionsError extends Error {
  constructor(path: string, mode: number, wanted: string) {
    const found = (mode & 0o777).toString(8).padStart(4, '0');
    super(`${path} has mode ${found}, which lets others at the agent's key; run: chmod ${wanted} ${path}`);
    this.name = 'LoosePermissionsError';
  }
}

/**
 * Makes the directory with mode 0700 where it is missing.
 * @throws LoosePermissionsError when it is there and group or others may do anything with it
 */
export function ensurePrivateDirectory(path: string): void {
  makeDirectory(resolve(path));
  const { mode } = statSync(path);
  if ((mode & 0o077) !== 0) throw new LoosePermissionsError(path, mode, '0700');
}

/**
 * With those above it, step by step: Node's own way never comes back where the system says that a place is not there
 * although its parent is, as /proc does.
 */
function makeDirectory(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw new Error(`${path} is not a directory`);
  if (dirname(path) !== path) makeDirectory(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

/**
 * @returns null when there is no such file
 * @throws LoosePermissionsError when group or others may do anything with it
 */
export function readPrivateFile(path: string): string | null {
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0) throw new LoosePermissionsError(path, mode, '0600');
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Writes a file, 0600 and on disk when this returns: old or new at any moment, also after a power cut.
 * @param existing what to do with one that is there: `replace` it, or `keep` it and throw (code EEXIST)
 */
export function writePrivateFile(path: string, text: string, existing: 'replace' | 'keep'): void {
  const directory = dirname(path);
  const temporary = join(directory, `.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (existing === 'replace') renameSync(temporary, path);
    else linkSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Also when there is none. */
export const removePrivateFile = (path: string): void => rmSync(path, { force: true });

/** @returns whose the directory is, when it is another user's than this process; null when it is ours */
export function otherOwner(path: string): number | null {
  const { uid } = statSync(path);
  return process.geteuid === undefined || uid === process.geteuid() ? null : uid;
}
