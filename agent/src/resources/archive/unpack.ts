import { HostFailure, hostFailure } from '../../host/failure.ts';
import { setProtectedOwnership } from '../../host/files/ownership.ts';
import {
  formatOf,
  listArchive,
  removeTree,
  syncFileSystem,
  type Tools,
  unpackArchive,
} from '../../host/trees/archive-tools.ts';
import { entryNamesOf, freeBytesAt, makePrivateDirectory, sizeOf, statusOf } from '../../host/trees/entries.ts';
import { entryOf, type Owner, type TreeEntry, visitTree } from '../../host/trees/tree-list.ts';
import {
  checkMembers,
  checkSymlink,
  isExcluded,
  maxListBytes,
  maxUnpacked,
  tarMembers,
  zipMembers,
} from './members.ts';
import type { Unpacking } from './place.ts';

/** Number of bytes to leave free on the file system. */
const reserve = 16 * 1024 * 1024;

/**
 * Unpacks an archive into a directory that only root can enter until it is complete.
 * @param into path of the directory, which must not exist
 * @returns path of the complete tree, in `into`, and its entries
 * @throws HostFailure; `into` may then exist
 */
export async function unpack(
  archive: string,
  into: string,
  { strip, exclude }: Unpacking,
  owner: Owner,
  tools: Tools,
): Promise<{ tree: string; entries: TreeEntry[] }> {
  const format = formatOf(archive);
  const { list, isCut } = await listArchive(archive, format, maxListBytes, tools);
  // The last line of a truncated list may be incomplete. Such a list has too many members.
  const whole = isCut ? list.slice(0, list.lastIndexOf('\n')) : list;
  if (isCut) throw new HostFailure(`the list of its members is longer than ${maxListBytes / 1024 / 1024} MiB`);
  const members = format === 'zip' ? zipMembers(whole) : tarMembers(whole);
  const { total, largest } = checkMembers(members, { strip, exclude }, sizeOf(archive));
  makePrivateDirectory(into);
  const free = freeBytesAt(into);
  if (total + reserve > free)
    throw new HostFailure(`the archive unpacks to ${total} bytes, and the file system has only ${free} left`);
  await unpackArchive(archive, format, into, { strip, maxFile: largest }, tools);
  try {
    const tree = format === 'zip' ? stripped(into, strip) : into;
    await removeExcluded(tree, exclude, tools);
    const entries = finish(tree, owner);
    await syncFileSystem(into, tools);
    return { tree, entries };
  } catch (error) {
    throw hostFailure(error, `unpack to ${into}`);
  }
}

/** Returns the directory that remains after `strip`. Unlike tar, unzip cannot omit leading directories. */
function stripped(root: string, strip: number): string {
  let tree = root;
  for (let level = 0; level < strip; level++) {
    const names = entryNamesOf(tree);
    const [only] = names;
    if (names.length !== 1 || only === undefined || !statusOf(`${tree}/${only}`)?.isDirectory())
      throw new HostFailure('with `strip`, everything in a zip must be in one directory');
    tree = `${tree}/${only}`;
  }
  return tree;
}

async function removeExcluded(tree: string, exclude: readonly string[], tools: Tools): Promise<void> {
  if (exclude.length === 0) return;
  const left: string[] = [];
  visitTree(tree, (path) => {
    if (isExcluded(path, exclude) && !left.some((outer) => path.startsWith(`${outer}/`))) left.push(path);
  });
  for (const path of left) await removeTree(`${tree}/${path}`, tools);
}

/** Checks the entries of a tree that only root can change, and sets their owner and permissions. */
function finish(tree: string, { uid, gid }: Owner): TreeEntry[] {
  const entries: TreeEntry[] = [];
  let total = 0;
  visitTree(tree, (path, stats) => {
    const full = `${tree}/${path}`;
    // Ignores set-ID bits, and write permissions for the group and others, in the archive.
    setProtectedOwnership(full, { uid, gid, mode: stats.isSymbolicLink() ? null : stats.mode & 0o755 });
    if (stats.isSymbolicLink()) checkSymlink(path, String((entryOf(tree, path, stats) as TreeEntry)[1]));
    const status = statusOf(full);
    const entry = status === null ? null : entryOf(tree, path, status);
    if (entry === null) throw new HostFailure(`${path} is neither a file, a directory, nor a link`);
    total += stats.isFile() ? stats.size : 0;
    if (total > maxUnpacked) throw new HostFailure('the archive unpacks to more than it declares');
    entries.push(entry);
  });
  setProtectedOwnership(tree, { uid, gid, mode: 0o755 });
  return entries;
}
