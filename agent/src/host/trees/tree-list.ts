import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { HostFailure } from '../failure.ts';

/** An entry in a tree: type, permissions, size and time of a file or target of a link, and path. */
export type TreeEntry =
  | readonly ['d', number, string]
  | readonly ['f', number, number, number, string]
  | readonly ['l', string, string];

/** Maximum number of entries to read from a tree. */
const maxEntries = 100_000;

const pathOf = (entry: TreeEntry): string => entry.at(-1) as string;

export interface Owner {
  uid: number;
  gid: number;
}

/**
 * Visits everything below a directory, parents first. Does not follow links.
 * @param path of the entry, relative to the directory
 */
export function visitTree(root: string, visit: (path: string, stats: Stats) => void): void {
  const walk = (folder: string): void => {
    for (const name of readdirSync(folder === '' ? root : `${root}/${folder}`)) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const stats = lstatSync(`${root}/${path}`);
      visit(path, stats);
      if (stats.isDirectory()) walk(path);
    }
  };
  walk('');
}

/** Returns the entry for a file, a directory, or a symbolic link; null for anything else. */
export function entryOf(root: string, path: string, stats: Stats): TreeEntry | null {
  const mode = stats.mode & 0o7777;
  if (stats.isDirectory()) return ['d', mode, path];
  if (stats.isFile()) return ['f', mode, stats.size, Math.floor(stats.mtimeMs), path];
  return stats.isSymbolicLink() ? ['l', readlinkSync(`${root}/${path}`), path] : null;
}

/** Differences between a tree and a list. Each list of paths contains only the first ones. */
export interface TreeDifference {
  changed: string[];
  changes: number;
  /** Entries that are not in the list. */
  added: string[];
  additions: number;
  /** Owner of the first entry that belongs to a different user; absent if there is none. */
  otherUid?: number;
  otherGid?: number;
}

const shownPaths = 5;

/**
 * Compares a tree with a list, by types, permissions, sizes, times, and targets. Does not read file contents.
 * @param owner the owner that all entries of the list must have
 * @param isKnown reports whether an entry that is not in the list belongs to another resource
 */
export function compareTree(
  root: string,
  entries: readonly TreeEntry[],
  owner: Partial<Owner>,
  isKnown: (path: string) => boolean,
): TreeDifference {
  const left = new Map(entries.map((entry) => [pathOf(entry), entry]));
  const difference: TreeDifference = { changed: [], changes: 0, added: [], additions: 0 };
  const changed = (path: string) => {
    if (difference.changes++ < shownPaths) difference.changed.push(path);
  };
  const check = ({ uid, gid }: Stats) => {
    if (owner.uid !== undefined && uid !== owner.uid) difference.otherUid ??= uid;
    if (owner.gid !== undefined && gid !== owner.gid) difference.otherGid ??= gid;
  };
  check(lstatSync(root));
  let visited = 0;
  visitTree(root, (path, stats) => {
    if (++visited > maxEntries) throw new HostFailure(`${root} has more than ${maxEntries} entries`);
    const entry = left.get(path);
    if (entry === undefined) {
      if (!isKnown(`${root}/${path}`) && difference.additions++ < shownPaths) difference.added.push(path);
      return;
    }
    left.delete(path);
    if (JSON.stringify(entryOf(root, path, stats)) !== JSON.stringify(entry)) changed(path);
    check(stats);
  });
  for (const path of left.keys()) changed(path);
  return difference;
}
