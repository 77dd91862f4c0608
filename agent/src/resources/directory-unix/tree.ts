import { type FieldChange, visibleLine } from '@muster/protocol';
import { readMountPoints } from '../../../../lib/src/mount-points.ts';
import { HostFailure } from '../../host/failure.ts';
import { inspectOpen, statusesIn } from '../../host/files/inspect.ts';
import type { OpenDirectory } from '../../host/files/path-walk.ts';
import { removeDirectory, removeFile } from '../../host/files/remove.ts';
import type { Machine } from '../provider/provider.ts';
import { containsAgent, isSystemDirectory } from './purge.ts';

/** Removes a directory and its content. The content is never restored. */

/** The entries below a directory that a removal with `force` removes. */
export interface Tree {
  count: number;
  /** The first paths, for the diff. */
  shown: string[];
  /** The first entry that belongs to a resource; null if there is none. */
  kept: string | null;
  /** Why the directory cannot be removed with its content; null if it can. */
  refusal: string | null;
}

/** @property device of the directory that contains the entry */
interface TreeEntry {
  path: string;
  isDirectory: boolean;
  device: number;
}

/** Maximum number of entries to remove at once. */
const maxEntries = 100_000;
/** Maximum depth below the directory, because the path to each entry is opened one component at a time. */
const maxDepth = 64;
/** Maximum number of paths in a diff. */
const maxShown = 200;
/** Number of entries to remove before the agent does other work. */
const slice = 500;

/** Directories in which the kernel, not a user, decides what exists. */
const ofKernel = /^\/((proc|sys)\/|dev\/[^/]+$)/;

/** @throws HostFailure if the directory must not be removed with its content */
export function checkTree(path: string): void {
  if (isSystemDirectory(path) || ofKernel.test(path))
    throw new HostFailure(`${path} is a system directory: declare force for a directory below it`);
}

/** Returns what `force` removes below a directory. */
export function observeTree(root: string, machine: Machine): Tree {
  try {
    const entries = entriesOf(root, machine);
    return {
      count: entries.length,
      shown: entries.slice(0, maxShown).map(({ path }) => path),
      kept: entries.find(({ path }) => machine.keeps(path))?.path ?? null,
      refusal: null,
    };
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return { count: 0, shown: [], kept: null, refusal: error.message };
  }
}

/**
 * Returns the entries below a directory, each directory before its entries. Follows no links.
 * @throws HostFailure if they must not be removed: a mount or the agent is below, or they exceed a limit
 */
function entriesOf(root: string, machine: Machine): TreeEntry[] {
  const open = machine.walk.open(root, 'null');
  if (open === null) return [];
  const realPath = open.path;
  machine.walk.release(open);
  if (realPath !== root)
    throw new HostFailure(`${root} leads to ${realPath} by a symbolic link: declare the removal of ${realPath}`);
  if (containsAgent(root, machine))
    throw new HostFailure(`${root} is not removed: it contains the program or the state of this agent`);
  for (const mounted of readMountPoints())
    if (mounted === root || mounted.startsWith(`${root}/`))
      throw new HostFailure(`${root} is not removed: ${mounted} is a mount point; unmount it first`);
  const entries: TreeEntry[] = [];
  const visit = (directory: string, depth: number, above: number | null): void => {
    if (depth > maxDepth)
      throw new HostFailure(`${root} has directories that are nested more than ${maxDepth} deep: remove them by hand`);
    const listed = statusesIn(machine.walk, directory, maxEntries - entries.length);
    if (listed === null) throw new HostFailure(`${root} has more than ${maxEntries} entries: remove them by hand`);
    if (above !== null && listed.device !== above)
      throw new HostFailure(`${directory} is on another file system, and is not removed: unmount it first`);
    for (const name of listed.unknown)
      throw new HostFailure(
        `${visibleLine(`${directory}/${name}`)} is not removed: its name is not UTF-8, or it cannot be read; remove it by hand`,
      );
    for (const { name, type } of listed.entries) {
      const path = `${directory}/${name}`;
      entries.push({ path, isDirectory: type === 'directory', device: listed.device });
      if (type === 'directory') visit(path, depth + 1, listed.device);
    }
  };
  visit(root, 0, null);
  return entries;
}

/**
 * Returns the planned removal of the entries.
 * @throws HostFailure if the directory must not be removed with its content
 */
export function treeChange(
  root: string,
  { count, shown, kept, refusal }: Tree,
): { changes: FieldChange[]; diff: string | null } {
  if (refusal !== null) throw new HostFailure(refusal);
  if (kept !== null)
    throw new HostFailure(`${root} is not removed: it contains ${visibleLine(kept)}, which belongs to a resource`);
  if (count === 0) return { changes: [], diff: null };
  const lines = shown.map((path) => `-${visibleLine(path)}\n`);
  const more = count > shown.length ? `\\ ${count - shown.length} more\n` : '';
  const from = `${count} ${count === 1 ? 'entry' : 'entries'} below`;
  return { changes: [{ field: 'force', from, to: null }], diff: `${lines.join('')}${more}` };
}

/**
 * Removes everything below a directory, the innermost entries first, so that an interrupted removal can continue.
 * @throws HostFailure if the directory must not be removed with its content, or an entry is added or moved
 */
export async function removeTree(root: string, machine: Machine): Promise<void> {
  machine.walk.forget();
  const entries = entriesOf(root, machine);
  for (let done = 0; done < entries.length; done += slice) {
    const end = entries.length - done;
    for (const entry of entries.slice(Math.max(0, end - slice), end).reverse()) removeEntry(entry, machine);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

function removeEntry({ path, isDirectory, device }: TreeEntry, machine: Machine): void {
  // A cached handle of a removed directory would keep it open.
  if (isDirectory) machine.walk.forget();
  machine.walk.within(path, 'null', (parent, name) => {
    // The path walk follows a link of root, and a mount is not visible in the path.
    if (`${parent.path}/${name}` !== path || deviceOf(parent) !== device)
      throw new HostFailure(`${path} is not removed: another object took the place of its directory; apply again`);
    machine.changedDirectory(parent.path);
    if (!isDirectory) removeFile(parent, name);
    else if (!removeDirectory(parent, name))
      throw new HostFailure(`${path} is not removed: a file was just added to it; apply again`);
  });
}

const deviceOf = (directory: OpenDirectory): number => Number(inspectOpen(directory).stamp.split(':')[0]);
