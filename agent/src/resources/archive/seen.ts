import { posix } from 'node:path';
import { HostFailure, hostFailure } from '../../host/failure.ts';
import { readText } from '../../host/read-system.ts';
import { entryNamesOf, inodeOf, linkTargetOf, type Stats, statusOf } from '../../host/trees/entries.ts';
import { compareTree, type TreeDifference, type TreeEntry } from '../../host/trees/tree-list.ts';
import { besideName } from '../../host/trees/tree-names.ts';
import { lookUpOwnership, type SeenOwnership } from '../provider/ownership.ts';
import type { Machine } from '../provider/provider.ts';
import {
  type Declared,
  folderOf,
  linkName,
  releaseOf,
  releasesName,
  trustedPath,
  type Unpacking,
  unpackingOf,
} from './place.ts';

/** The agent's list of the entries in a tree that it unpacked. */
export type TreeList = Unpacking & { entries: TreeEntry[] };

export interface SeenArchive {
  /** The archive to unpack; null if the path must not exist. */
  wanted: Unpacking | null;
  /** Type of the object at `path`. */
  found: 'absent' | 'directory' | 'file' | 'symlink' | 'other';
  /** Identifies the object at `path`. */
  inode: string | null;
  /** Identifies the object that was originally at `path` and is now kept next to it. */
  kept: string | null;
  /** How the tree was unpacked; null if the agent did not unpack it. */
  list: Unpacking | null;
  /** Differences between the tree and the unpacked one. */
  tree: TreeDifference | null;
  ownership: SeenOwnership;
  /** Set only if `keep` is declared. */
  releases: SeenReleases | null;
}

export interface SeenReleases {
  /** Target of the link `current`; null if there is none. */
  link: string | null;
  /** Names of the releases that the agent unpacked. */
  names: string[];
  hasRoot: boolean;
  hasReleases: boolean;
}

function typeOf(stats: Stats | null): SeenArchive['found'] {
  if (stats === null) return 'absent';
  if (stats.isDirectory()) return 'directory';
  if (stats.isFile()) return 'file';
  return stats.isSymbolicLink() ? 'symlink' : 'other';
}

export function lookAtArchive(resource: Declared, machine: Machine): SeenArchive {
  const { body } = resource;
  const { path, keep } = body;
  const wanted = body.ensure === 'absent' ? null : unpackingOf(resource);
  const none = { uid: 0, gid: 0, mode: 0 };
  const { walk, accounts } = machine;
  const folder = trustedPath(walk, folderOf(path), 'null');
  const seen: SeenArchive = {
    ...{ wanted, found: 'absent', inode: null, kept: null, list: null, tree: null, releases: null },
    ownership: { ...lookUpOwnership(body, none, accounts), ownerName: null, groupName: null },
  };
  if (folder === null)
    return keep == null ? seen : { ...seen, releases: { link: null, names: [], hasRoot: false, hasReleases: false } };
  const name = posix.basename(path);
  if (keep == null) {
    if (releasesIn(`${folder}/${name}/${releasesName}`).length > 0)
      throw new HostFailure(`${path} has releases: declare \`keep\`, or remove the resource with \`keep\` first`);
    const kept = inodeOf(statusOf(`${folder}/${besideName(name, 'before')}`));
    return { ...seen, ...lookAtTree(folder, name, seen, machine), kept };
  }
  if (statusOf(`${folder}/${besideName(name, 'list')}`) !== null)
    throw new HostFailure(`${path} was unpacked without \`keep\`: remove that resource first`);
  const root = trustedPath(walk, path, 'null');
  const releases = root === null ? null : trustedPath(walk, `${path}/${releasesName}`, 'null');
  const link = root === null ? null : statusOf(`${root}/${linkName}`);
  if (link !== null && !link.isSymbolicLink())
    throw new HostFailure(`${path}/${linkName} exists and is not a symbolic link: move it to another path`);
  return {
    ...seen,
    ...(releases === null || wanted === null ? {} : lookAtTree(releases, releaseOf(wanted), seen, machine)),
    releases: {
      link: link === null ? null : linkTargetOf(`${root}/${linkName}`),
      names: releases === null ? [] : releasesIn(releases),
      hasRoot: root !== null,
      hasReleases: releases !== null,
    },
  };
}

/** Returns the names of the releases that the agent unpacked, most recently used first. */
export function releasesIn(folder: string): string[] {
  const entries = statusOf(folder)?.isDirectory() ? entryNamesOf(folder) : [];
  return entries
    .flatMap((name) => {
      const list = statusOf(`${folder}/${besideName(name, 'list')}`);
      return list === null ? [] : [{ name, usedAt: list.mtimeMs }];
    })
    .sort((a, b) => b.usedAt - a.usedAt || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

function lookAtTree(
  folder: string,
  name: string,
  { ownership }: SeenArchive,
  machine: Machine,
): Pick<SeenArchive, 'found' | 'inode' | 'list' | 'tree' | 'ownership'> {
  const stats = statusOf(`${folder}/${name}`);
  const found = typeOf(stats);
  const list = readList(`${folder}/${besideName(name, 'list')}`);
  if (list === null || found !== 'directory')
    return { found, inode: inodeOf(stats), list: list === null ? null : withoutEntries(list), tree: null, ownership };
  const { wantedUid, wantedGid } = ownership;
  const owner = { ...(wantedUid == null ? {} : { uid: wantedUid }), ...(wantedGid == null ? {} : { gid: wantedGid }) };
  try {
    const tree = compareTree(`${folder}/${name}`, list.entries, owner, (path) => machine.declared(path));
    const { accounts } = machine;
    return {
      ...{ found, inode: inodeOf(stats), list: withoutEntries(list), tree },
      ownership: {
        ...ownership,
        ownerName: tree.otherUid === undefined ? null : accounts.userName(tree.otherUid),
        groupName: tree.otherGid === undefined ? null : accounts.groupName(tree.otherGid),
      },
    };
  } catch (error) {
    throw hostFailure(error, `read ${folder}/${name}`);
  }
}

const withoutEntries = ({ sha256, strip, exclude }: TreeList): Unpacking => ({ sha256, strip, exclude });

/** Reads a list that the agent wrote. A damaged list counts as missing. */
function readList(path: string): TreeList | null {
  if (statusOf(path) === null) return null;
  try {
    const list = JSON.parse(readText(path) ?? '') as Partial<TreeList>;
    const { sha256, strip, exclude, entries } = list;
    const isRight =
      typeof sha256 === 'string' && typeof strip === 'number' && Array.isArray(exclude) && Array.isArray(entries);
    return isRight ? { sha256, strip, exclude, entries } : { sha256: '', strip: 0, exclude: [], entries: [] };
  } catch {
    return { sha256: '', strip: 0, exclude: [], entries: [] };
  }
}
