import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { HostFailure, hostFailure } from '../failure.ts';
import { expectUnchanged, type Inspected, inspect } from './inspect.ts';
import type { OpenDirectory, PathWalk } from './path-walk.ts';
import { removeDirectory, removeFile } from './remove.ts';

/** What a new home directory has in it, and whether it still has that and nothing else. */

const maxEntries = 1000;

/** Sums up what is in a directory: names, kinds, contents and where links lead. Not who owns it, nor when it was made. */
export const summaryOfTree = (walk: PathWalk, directory: string): string => summaryOf(entriesOf(walk, directory));

function summaryOf(entries: readonly Entry[]): string {
  const digest = createHash('sha256');
  for (const { path, kind, what } of entries) digest.update(`${JSON.stringify([path, kind, what])}\n`);
  return digest.digest('hex');
}

/**
 * Removes a directory if what is in it sums up to this: exactly the entries that were summed up, and each only if it is
 * as it was then.
 * @returns whether it is gone
 * @throws HostFailure when it cannot be removed
 */
export function removeIfUntouched(walk: PathWalk, directory: string, summary: string): boolean {
  walk.forget();
  const { type } = inspect(walk, directory, false);
  // Whatever took its place was put there by somebody.
  if (type !== 'directory') return type === 'absent';
  let entries: Entry[];
  try {
    entries = entriesOf(walk, directory);
    if (summaryOf(entries) !== summary || entries.some(isUncompared)) return false;
  } catch (error) {
    // What cannot be looked at, such as a link that may lead anywhere, was put there by somebody.
    if (error instanceof HostFailure) return false;
    throw error;
  }
  // What is in a directory before the directory.
  for (const { path, kind, found } of entries.reverse()) {
    const gone = walk.within(`${directory}/${path}`, 'null', (parent, name) => {
      if (kind === 'directory') return removeDirectory(parent, name);
      if (!isUnchanged(parent, name, found)) return false;
      removeFile(parent, name);
      return true;
    });
    if (gone === false) return false;
  }
  walk.forget();
  return walk.within(directory, 'null', (parent, name) => removeDirectory(parent, name)) ?? true;
}

/** A file that is too large to be read is summed up by its size alone. */
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
  /** Below the directory. */
  path: string;
  kind: string;
  what: string | number | null;
  found: Inspected;
}

/** Everything in a directory, each directory before what is in it. */
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
      if (entries.length >= maxEntries) throw new HostFailure(`there is too much in ${directory}`);
      if (found.type === 'file') {
        const { content } = found;
        entries.push({ path: inside, kind: 'file', what: content?.sha256 ?? content?.size ?? null, found });
      } else if (found.type === 'symlink') entries.push({ path: inside, kind: 'symlink', what: found.target, found });
      else if (found.type === 'directory') {
        entries.push({ path: inside, kind: 'directory', what: null, found });
        list(inside);
      } else entries.push({ path: inside, kind: found.type === 'other' ? found.kind : found.type, what: null, found });
    }
  };
  list('');
  return entries;
}
