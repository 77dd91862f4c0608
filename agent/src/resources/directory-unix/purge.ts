import { type FieldChange, visibleLine } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import { permissionsWithoutAcl, withDirectory } from '../../host/files/acl-entries.ts';
import { writeFileAtomically, writeSymlinkAtomically } from '../../host/files/atomic-write.ts';
import { setIdBits } from '../../host/files/decide-ownership.ts';
import {
  expectUnchanged,
  type Inspected,
  inspect,
  listDirectory,
  type Ownership,
  withFile,
} from '../../host/files/inspect.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import { removeDirectory, removeFile } from '../../host/files/remove.ts';
import { agentName } from '../../host/trees/tree-names.ts';
import type { CopyReference, Machine } from '../provider/provider.ts';

/** Removes undeclared entries from a directory, and restores them. */

/** An entry below the directory that no resource declares. Directories come before their entries. */
export interface ForeignEntry {
  path: string;
  found: Inspected;
  /**
   * Device of the entry if it is a directory, otherwise that of its directory; null if that is the purged directory.
   */
  readonly device: string | null;
}

/** A removed entry in its original state. */
export type PurgedEntry = { path: string; uid: number; gid: number; mode: number } & (
  | { was: 'file'; content: { sha256: string; size: number } }
  | { was: 'symlink'; target: string }
  | { was: 'directory' }
);

/** Maximum number of undeclared entries. */
const maxEntries = 10_000;
/** Maximum total size of the files to copy, in bytes. */
const maxBytes = 1024 * 1024 * 1024;
/** Maximum number of paths in a diff. */
const maxShown = 200;

/** System directories, which contain files that no module declares. */
const vital =
  /^\/(bin|boot|dev|etc|home|lib\d*|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|usr\/[^/]+|usr\/local\/[^/]+|var|var\/[^/]+)$/;

export const isSystemDirectory = (path: string): boolean => vital.test(path);

/** @throws HostFailure if the directory must not be purged */
export function checkPurge(path: string): void {
  if (isSystemDirectory(path))
    throw new HostFailure(`${path} is a system directory: declare purge for a directory below it`);
}

/** Reports whether the agent's program or its state is in the directory, or the directory is part of the state. */
export const containsAgent = (root: string, machine: Machine): boolean =>
  machine.ownPaths.some((path) => path === root || path.startsWith(`${root}/`) || root.startsWith(`${path}/`));

/** Maximum depth below the directory, because the path to each entry is opened one component at a time. */
const maxDepth = 64;

/**
 * Returns the entries below a directory that no resource declares.
 * @throws HostFailure if there are too many, they are too deep, or a link leads to the directory
 */
export function foreignEntries(root: string, machine: Machine): ForeignEntry[] {
  const open = machine.walk.open(root, 'null');
  if (open === null) return [];
  const realPath = open.path;
  machine.walk.release(open);
  if (realPath !== root)
    throw new HostFailure(`${root} leads to ${realPath} by a symbolic link: declare purge for ${realPath}`);
  if (containsAgent(root, machine))
    throw new HostFailure(`${root} is not purged: it contains the program or the state of this agent`);
  // Entries in these trees have no resources of their own.
  const trees = new Set(
    (['archive', 'git'] as const).flatMap((type) => machine.resourcesOf(type).map(({ identity }) => identity)),
  );
  const entries: ForeignEntry[] = [];
  const visit = (directory: string, depth: number, device: string | null): void => {
    if (depth > maxDepth)
      throw new HostFailure(`${root} has directories that are nested more than ${maxDepth} deep: remove them by hand`);
    const names = listDirectory(machine.walk, directory, maxEntries);
    for (const name of names ?? []) {
      const path = `${directory}/${name}`;
      if (agentName.test(name)) continue;
      const found = inspect(machine.walk, path, false);
      if (found.type === 'absent') continue;
      if (trees.has(path)) continue;
      // In an overlay, files from a lower layer have that layer's device number, and only directories have the
      // overlay's.
      const own = found.type === 'directory' ? deviceOf(found) : device;
      if (!machine.manages(path)) entries.push({ path, found, device: own });
      if (found.type === 'directory') visit(path, depth + 1, own);
      if (entries.length > maxEntries) break;
    }
    if (names === null || entries.length > maxEntries)
      throw new HostFailure(`${root} has more than ${maxEntries} undeclared entries: remove them by hand`);
  };
  visit(root, 0, null);
  return entries;
}

/** Returns the planned change, or the drift, for undeclared entries. */
export function purgeChange(entries: readonly ForeignEntry[]): { changes: FieldChange[]; diff: string | null } {
  if (entries.length === 0) return { changes: [], diff: null };
  const from = `${entries.length} undeclared ${entries.length === 1 ? 'entry' : 'entries'}`;
  const lines = entries.slice(0, maxShown).map(({ path }) => `-${visibleLine(path)}\n`);
  const more = entries.length > maxShown ? `\\ ${entries.length - maxShown} more\n` : '';
  return { changes: [{ field: 'purge', from, to: null }], diff: `${lines.join('')}${more}` };
}

/** @throws HostFailure for an entry that could not be restored, or that is on another file system */
export function checkEntries(root: Inspected, entries: readonly ForeignEntry[]): void {
  for (const { path, found, device } of entries) {
    if (found.type === 'other')
      throw new HostFailure(`${path} is a ${found.kind}, which is not removed: remove it by hand, or declare it`);
    if (root.type !== 'absent' && device !== null && device !== deviceOf(root))
      throw new HostFailure(`${path} is on another file system, and is not removed: unmount it, or declare it`);
  }
}

const deviceOf = (found: Inspected): string => (found.type === 'absent' ? '' : (found.stamp.split(':')[0] ?? ''));

/**
 * Copies entries before they are removed.
 * @param before entries that were removed earlier; their first recorded state is retained
 * @throws HostFailure if a file cannot be copied
 */
export async function rememberEntries(
  entries: readonly ForeignEntry[],
  before: readonly PurgedEntry[],
  machine: Machine,
): Promise<PurgedEntry[]> {
  const bytes = entries.reduce((sum, { found }) => sum + (found.type === 'file' ? found.size : 0), 0);
  if (bytes > maxBytes)
    throw new HostFailure(
      `the undeclared files have ${Math.ceil(bytes / 1024 / 1024)} MiB, and the agent keeps copies of at most ${maxBytes / 1024 / 1024} MiB: remove them by hand`,
    );
  const known = new Set(before.map(({ path }) => path));
  const kept = [...before];
  for (const { path, found } of entries) {
    if (known.has(path) || found.type === 'absent' || found.type === 'other') continue;
    const { uid, gid } = found;
    // A user may have moved a program with a set-ID bit here, so the agent must not restore the bit.
    const shown = found.movable ? found.mode & ~setIdBits : found.mode;
    const mode = shown & (await permissionsOf(path, found, machine.walk));
    const common = { path, uid, gid, mode };
    if (found.type === 'directory') kept.push({ ...common, was: 'directory' });
    else if (found.type === 'symlink') kept.push({ ...common, was: 'symlink', target: found.target });
    else kept.push({ ...common, was: 'file', content: await copyOf(path, found, machine) });
  }
  return kept;
}

/** Returns the permissions of an entry without its ACL, which is not restored. */
export async function permissionsOf(
  path: string,
  found: Exclude<Inspected, { type: 'absent' | 'other' }>,
  walk: PathWalk,
): Promise<number> {
  const read = (fd: number) => permissionsWithoutAcl(`/proc/${process.pid}/fd/${fd}`, path, found.mode);
  if (found.type === 'file') return withFile(walk, path, found, read);
  const directory = found.type === 'directory' ? walk.open(path, 'null') : null;
  if (directory === null) return found.mode;
  try {
    return await withDirectory(directory, read);
  } finally {
    walk.release(directory);
  }
}

async function copyOf(path: string, found: Inspected, machine: Machine): Promise<CopyReference> {
  return withFile(machine.walk, path, found, (openFd) => machine.copies.keep({ openFd }));
}

/** @throws HostFailure if an entry has changed since it was observed */
export function removeEntries(entries: readonly ForeignEntry[], machine: Machine): void {
  for (const { path, found } of [...entries].reverse()) {
    if (found.type === 'directory') machine.walk.forget();
    machine.walk.within(path, 'null', (parent, name) => {
      machine.changedDirectory(parent.path);
      if (found.type === 'directory') {
        if (!removeDirectory(parent, name))
          throw new HostFailure(`${path} is not removed: a file was just added to it; apply again`);
        return;
      }
      expectUnchanged(parent, name, found);
      removeFile(parent, name);
    });
  }
}

/** Returns the removed entries that can be restored: their path does not exist, and no resource declares it. */
export const missingEntries = (purged: readonly PurgedEntry[], machine: Machine): PurgedEntry[] =>
  purged.filter(({ path }) => !machine.declared(path) && inspect(machine.walk, path, false).type === 'absent');

/** @param makeDirectory creates a directory with this owner and these permissions */
export async function restoreEntries(
  entries: readonly PurgedEntry[],
  machine: Machine,
  makeDirectory: (path: string, target: Ownership) => Promise<void>,
): Promise<void> {
  const absent = { type: 'absent' } as const;
  for (const entry of entries) {
    const { path, uid, gid, mode } = entry;
    if (entry.was === 'directory') {
      await makeDirectory(path, { uid, gid, mode });
      continue;
    }
    await machine.walk.within(path, 'make', async (parent, name) => {
      machine.changedDirectory(parent.path);
      if (entry.was === 'symlink') {
        expectUnchanged(parent, name, absent);
        writeSymlinkAtomically(parent, name, { target: entry.target, uid, gid });
        return;
      }
      await writeFileAtomically(parent, name, {
        content: { copyOf: machine.copies.pathOf(entry.content) },
        ...{ uid, gid, mode },
        beforeRename: async () => expectUnchanged(parent, name, absent),
      });
    });
  }
}
