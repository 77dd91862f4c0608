import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';
import { makeDirectory } from '../files/make-directory.ts';

/**
 * Entries of directories that only root can change, where a path cannot lead to another object between two calls. All
 * functions throw HostFailure.
 */

export type { Stats };

/** Returns the status of an entry, without following a link; null if there is none. */
export function statusOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return null;
    throw hostFailure(error, `read ${path}`);
  }
}

/** Returns a string that identifies an object until it is deleted. */
export const inodeOf = (stats: Stats | null): string | null => (stats === null ? null : `${stats.dev}:${stats.ino}`);

/**
 * Returns the names in a directory.
 * @throws HostFailure if it cannot be read
 */
export const entryNamesOf = (path: string): string[] => attempt(`read ${path}`, () => readdirSync(path));

export const linkTargetOf = (path: string): string => attempt(`read ${path}`, () => readlinkSync(path));

/** Returns the size of a file in bytes. Follows links. */
export const sizeOf = (path: string): number => attempt(`read ${path}`, () => statSync(path).size);

/** Returns the number of available bytes on a path's file system. */
export function freeBytesAt(path: string): number {
  const { bavail, bsize } = attempt(`read the free space at ${path}`, () => statfsSync(path));
  return bavail * bsize;
}

/** Creates a directory that only root can enter. */
export const makePrivateDirectory = (path: string): void =>
  attempt(`create the directory ${path}`, () => mkdirSync(path, { mode: 0o700 }));

/** Creates a directory with mode 0755 unless the entry exists. */
export function makeUnlessPresent(path: string): void {
  try {
    makeDirectory(path, 0o755);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw hostFailure(error, `create the directory ${path}`);
  }
}

/** Renames an entry. Replaces an existing file. Replaces an existing empty directory if the entry is a directory. */
export const moveEntry = (from: string, to: string): void =>
  attempt(`move ${from} to ${to}`, () => renameSync(from, to));

/** Removes a file or link if it exists. */
export const removeEntry = (path: string): void => attempt(`remove ${path}`, () => rmSync(path, { force: true }));

/** Removes a directory if it exists and is empty. */
export function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(errnoOf(error) ?? '')) throw hostFailure(error, `remove ${path}`);
  }
}

/** @param time Unix seconds */
export const setModified = (path: string, time: number): void =>
  attempt(`set the time of ${path}`, () => utimesSync(path, time, time));

function attempt<T>(doing: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw hostFailure(error, doing);
  }
}
