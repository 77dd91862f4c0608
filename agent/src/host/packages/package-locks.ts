import { realpathSync } from 'node:fs';
import { PathWalk } from '../files/path-walk.ts';
import { removeFile } from '../files/remove.ts';
import { readRootFile, writeRootFile } from '../files/root-file.ts';
import { fileStatus } from '../read-system.ts';
import type { PackageVersion } from './rpm-version.ts';

/**
 * Reads and edits the file in which a package manager records locked packages. Its other bytes stay as they are, so texts
 * have one character for each byte.
 */

/** An entry of the file, and its index among the entries. */
export type PackageLock = { at: number; line: string };

/** The file of one package manager. All functions are pure, except `file` and `isUsed`. */
export interface PackageLocks {
  /** The file, as messages name it. */
  readonly title: string;
  /** Returns the path, which settings may change. */
  file(): string;
  /** Whether the file is deleted when nothing remains in it. */
  readonly isDeletedIfEmpty: boolean;
  /** Reports whether the package manager reads the file. */
  isUsed(): boolean;
  /** Returns the names of all locked packages, which may be patterns with `*` and `?`. */
  names(text: string): string[];
  /** Returns the entries that lock exactly this package. Excludes patterns, which may also lock other packages. */
  of(text: string, name: string): PackageLock[];
  /** Replaces the entries that lock exactly this package. An index beyond the list refers to its end. */
  replaced(text: string, name: string, locks: readonly PackageLock[]): string;
  /**
   * Returns the entries that lock a package at a version.
   * @param former the entries that locked it before; they stay as they are if they contain no version
   */
  entries(name: string, version: PackageVersion, former: readonly PackageLock[]): readonly PackageLock[];
}

/**
 * Returns the text of the file; empty if the package manager does not read it.
 * @throws HostFailure if it cannot be read
 */
export const readLocks = ({ file, isUsed }: PackageLocks): string => (isUsed() ? (readRootFile(file()) ?? '') : '');

/**
 * Edits the lock file, and deletes it if it becomes empty and `isDeletedIfEmpty` is set.
 * @throws HostFailure if it cannot be read or written
 */
export async function editLocks(
  { file, isDeletedIfEmpty }: PackageLocks,
  edit: (text: string) => string,
): Promise<void> {
  const path = behindLinks(file());
  const text = readRootFile(path) ?? '';
  const edited = edit(text);
  if (edited === text) return;
  if (edited !== '' || !isDeletedIfEmpty)
    return writeRootFile(path, Buffer.from(edited, 'latin1'), fileStatus(path)?.mode ?? 0o644);
  const walk = new PathWalk();
  try {
    walk.within(path, 'null', removeFile);
  } finally {
    walk.close();
  }
}

/** Returns the path of the file that a link leads to, because the file is replaced, and the link must stay. */
function behindLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return path;
    throw error;
  }
}
