import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { HostFailure, hostFailure } from '../failure.ts';
import { expectUnchanged, type Inspected, inspect } from './inspect.ts';
import type { OpenDirectory, PathWalk } from './path-walk.ts';
import { removeDirectory, removeFile } from './remove.ts';

/** Fingerprints directory trees, so that a home directory is removed only if it contains exactly its initial files. */

const maxEntries = 1000;

/** Returns the hash of a directory tree: names, types, contents, and link targets, without owners and times. */
export const digestOfTree = (walk: PathWalk, directory: string): string => digestOf(entriesOf(walk, directory));

function digestOf(entries: readonly Entry[]): string {
  const digest = createHash('sha256');
  for (const { path, kind, value } of entries) digest.update(`${JSON.stringify([path, kind, value])}\n`);
  return digest.digest('hex');
}

/**
 * Removes a directory tree if it has this digest. Checks each entry again just before removing it.
 * @returns whether the tree no longer exists
 * @throws HostFailure if an entry cannot be removed
 */
export function removeIfUntouched(walk: PathWalk, directory: string, expected: string): boolean {
  walk.forget();
  const { type } = inspect(walk, directory, false);
  // Keeps an object of a different type that another process put in place of the directory.
  if (type !== 'directory') return type === 'absent';
  let entries: Entry[];
  try {
    entries = entriesOf(walk, directory);
    if (digestOf(entries) !== expected || entries.some(isUncompared)) return false;
  } catch (error) {
    // Another process created an entry that cannot be inspected, such as an unsafe link.
    if (error instanceof HostFailure) return false;
    throw error;
  }
  // Reversed, so that the entries of a directory come before the directory itself.
  for (const { path, kind, found } of entries.reverse()) {
    const isRemoved = walk.within(`${directory}/${path}`, 'null', (parent, name) => {
      if (kind === 'directory') return removeDirectory(parent, name);
      if (!isUnchanged(parent, name, found)) return false;
      removeFile(parent, name);
      return true;
    });
    if (isRemoved === false) return false;
  }
  walk.forget();
  return walk.within(directory, 'null', (parent, name) => removeDirectory(parent, name)) ?? true;
}

/** Reports whether a file is too large to read, in which case the digest covers only its size. */
const isUncompared = ({ found }: Entry): boolean => found.type === 'file' && found.content?.sha256 == null;

function isUnchanged(parent: OpenDirectory, name: string, found: Inspected): boolean {
  try {
    expectUnchanged(parent, name, found);
    return true;
  } catch (error) {
    if (error instanceof HostFailure) return false;
    throw error;
  }
}

interface Entry {
  /** The path relative to the directory. */
  path: string;
  kind: string;
  value: string | number | null;
  found: Inspected;
}

/** Lists a tree. Each directory comes before its entries. */
function entriesOf(walk: PathWalk, directory: string): Entry[] {
  const entries: Entry[] = [];
  const list = (below: string): void => {
    const path = below === '' ? directory : `${directory}/${below}`;
    const open = walk.open(path, 'null');
    if (open === null) return;
    let names: string[];
    try {
      names = readdirSync(open.self).sort();
    } catch (error) {
      throw hostFailure(error, `list ${path}`);
    } finally {
      walk.release(open);
    }
    for (const name of names) {
      const inside = below === '' ? name : `${below}/${name}`;
      const found = inspect(walk, `${directory}/${inside}`, true);
      if (entries.length >= maxEntries) throw new HostFailure(`${directory} has more than ${maxEntries} entries`);
      if (found.type === 'file') {
        const { content } = found;
        entries.push({ path: inside, kind: 'file', value: content?.sha256 ?? content?.size ?? null, found });
      } else if (found.type === 'symlink') entries.push({ path: inside, kind: 'symlink', value: found.target, found });
      else if (found.type === 'directory') {
        entries.push({ path: inside, kind: 'directory', value: null, found });
        list(inside);
      } else entries.push({ path: inside, kind: found.type === 'other' ? found.kind : found.type, value: null, found });
    }
  };
  list('');
  return entries;
}
