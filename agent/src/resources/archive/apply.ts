import { posix } from 'node:path';
import { HostFailure, hostFailure } from '../../host/failure.ts';
import { writeFileAtomically, writeSymlinkAtomically } from '../../host/files/atomic-write.ts';
import { removeTree } from '../../host/trees/archive-tools.ts';
import {
  makeUnlessPresent,
  moveEntry,
  removeEntry,
  removeIfEmpty,
  setModified,
  statusOf,
} from '../../host/trees/entries.ts';
import { besideName } from '../../host/trees/tree-names.ts';
import { notDownloaded } from '../download/shown-url.ts';
import type { Difference, Machine, Outcome } from '../provider/provider.ts';
import { isUnpacked, targetOf } from './diff.ts';
import { type Declared, folderOf, linkName, releaseOf, releasesName, trustedPath, type Unpacking } from './place.ts';
import { releasesIn, type SeenArchive, type TreeList } from './seen.ts';
import { unpack } from './unpack.ts';

/** The state before the agent's first change. */
export type ArchiveBefore =
  /** `inode` identifies the object that is kept next to `path`; null if there was none. */
  | { was: 'path'; inode: string | null }
  /** `link` is the target of `current`. `made` records which directories the agent created. */
  | { was: 'releases'; link: string | null; made: { root: boolean; releases: boolean } }
  | BeforeTrial;

/** The state before a change that is reverted if a service fails after the change. */
type BeforeTrial =
  /**
   * `link` is the target of `current`, which may be another directory. `names` are the releases that the agent
   * unpacked.
   */
  | { was: 'release'; link: string | null; names: string[] }
  /** The agent's own tree at `path`, or the release in use. A new tree replaces it as a whole. */
  | { was: 'tree' };

export function rememberArchive(seen: SeenArchive, before: ArchiveBefore | null): ArchiveBefore {
  if (before !== null) return before;
  const { releases } = seen;
  if (releases === null)
    return { was: 'path', inode: seen.list === null && seen.kept === null ? seen.inode : seen.kept };
  const isOurs = releases.names.some((name) => targetOf(name) === releases.link);
  return {
    was: 'releases',
    link: isOurs ? null : releases.link,
    made: { root: !releases.hasRoot, releases: !releases.hasReleases || releases.names.length > 0 },
  };
}

/** Returns a record that includes the agent's own trees, which `rememberArchive` treats as absent. */
export function rememberArchiveForTrial(seen: SeenArchive): ArchiveBefore {
  const { releases, wanted } = seen;
  if (releases === null) return seen.list === null ? rememberArchive(seen, null) : { was: 'tree' };
  const { link, names } = releases;
  if (wanted !== null && names.includes(releaseOf(wanted)) && link === targetOf(releaseOf(wanted)))
    return { was: 'tree' };
  return names.length > 0 ? { was: 'release', link, names } : rememberArchive(seen, null);
}

export async function applyArchive(
  resource: Declared,
  seen: SeenArchive,
  difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const { wanted } = seen;
  const { body } = resource;
  if (wanted === null) {
    await (seen.releases === null ? takeAway(resource, machine) : removeReleases(resource, machine));
    if (seen.releases !== null) await setLink(resource, null, machine);
    return {};
  }
  const place = seen.releases === null ? placeOf(resource, machine) : releasesOf(resource, machine, wanted);
  if (isUnpacked(seen, difference)) {
    const { wantedUid, wantedGid } = seen.ownership;
    const owner = { uid: wantedUid ?? 0, gid: wantedGid ?? 0 };
    const put = ({ path }: { path: string }) => putTree(place, path, wanted, owner, machine);
    if (body.source != null && resource.source !== undefined) await machine.useContent(resource.source, put);
    else
      await machine.useDownload({ url: body.url ?? '', sha256: wanted.sha256 }, put).catch((error: unknown) => {
        throw error instanceof UnpackFailure ? error : notDownloaded(resource, 'url', error);
      });
  }
  if (seen.releases === null) return {};
  await setLink(resource, targetOf(place.name), machine);
  await prune(place, body.keep ?? 1, machine);
  return {};
}

/** Distinguishes failures after the download from failures before the download. */
class UnpackFailure extends HostFailure {}

/** Parent directory and name of a tree. */
interface Place {
  folder: string;
  name: string;
}

function placeOf({ body }: Declared, machine: Machine): Place {
  const folder = trustedPath(machine.walk, folderOf(body.path), 'make') ?? '';
  return { folder, name: posix.basename(body.path) };
}

function releasesOf(resource: Declared, machine: Machine, wanted: Unpacking): Place {
  const { folder, name } = placeOf(resource, machine);
  const { walk } = machine;
  for (const path of [`${folder}/${name}`, `${folder}/${name}/${releasesName}`]) makeUnlessPresent(path);
  walk.forget();
  const releases = trustedPath(walk, `${resource.body.path}/${releasesName}`, 'null');
  if (releases === null) throw new HostFailure(`${resource.body.path} was removed during the apply; apply again`);
  return { folder: releases, name: releaseOf(wanted) };
}

/** Unpacks a tree next to its destination, and moves it there once it is complete. */
async function putTree(
  place: Place,
  archive: string,
  unpacking: Unpacking,
  owner: { uid: number; gid: number },
  machine: Machine,
): Promise<void> {
  const { folder, name } = place;
  const beside = (which: Parameters<typeof besideName>[1]) => `${folder}/${besideName(name, which)}`;
  await removeTree(beside('new'), machine);
  await removeTree(beside('old'), machine);
  try {
    const { tree, entries } = await unpack(archive, beside('new'), unpacking, owner, machine);
    await moveAway(place, machine);
    await writeList(place, { ...unpacking, entries }, machine);
    moveEntry(tree, `${folder}/${name}`);
    machine.changedDirectory(folder);
  } catch (error) {
    await giveBack(place);
    throw new UnpackFailure(hostFailure(error, `unpack the archive to ${folder}/${name}`).message);
  } finally {
    await removeTree(beside('new'), machine);
    await removeTree(beside('old'), machine);
  }
}

/** Moves the existing object aside: the agent's own tree for deletion, any other object to be kept. */
async function moveAway({ folder, name }: Place, machine: Machine): Promise<void> {
  const path = `${folder}/${name}`;
  if (statusOf(path) === null) return;
  const kept = `${folder}/${besideName(name, 'before')}`;
  const isOurs = statusOf(`${folder}/${besideName(name, 'list')}`) !== null || statusOf(kept) !== null;
  moveEntry(path, isOurs ? `${folder}/${besideName(name, 'old')}` : kept);
  machine.changedDirectory(folder);
}

/** Restores the tree that `moveAway` moved, unless a new one has replaced it. */
async function giveBack({ folder, name }: Place): Promise<void> {
  const path = `${folder}/${name}`;
  const old = `${folder}/${besideName(name, 'old')}`;
  if (statusOf(path) === null && statusOf(old) !== null) moveEntry(old, path);
}

function writeList({ folder, name }: Place, list: TreeList, machine: Machine): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(list));
  const file = { content: { bytes }, uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0, mode: 0o600 };
  return machine.walk.within(`${folder}/${besideName(name, 'list')}`, 'make', (parent, listName) =>
    writeFileAtomically(parent, listName, file),
  );
}

/** @param target null to remove the link */
async function setLink({ body }: Declared, target: string | null, machine: Machine): Promise<void> {
  const { walk } = machine;
  await walk.within(`${body.path}/${linkName}`, 'null', async (parent, name) => {
    const stats = statusOf(parent.child(name));
    if (stats !== null && !stats.isSymbolicLink())
      throw new HostFailure(`${body.path}/${linkName} exists and is not a symbolic link: move it to another path`);
    if (target === null) removeEntry(parent.child(name));
    else
      writeSymlinkAtomically(parent, name, {
        target,
        uid: process.geteuid?.() ?? 0,
        gid: process.getegid?.() ?? 0,
      });
    machine.changedDirectory(parent.path);
  });
}

/** Makes a release the most recently used one. */
const renew = ({ folder, name }: Place, machine: Machine): void =>
  setModified(`${folder}/${besideName(name, 'list')}`, machine.clock.now() / 1000);

/** Removes the least recently used releases. */
async function prune(place: Place, keep: number, machine: Machine): Promise<void> {
  const { folder, name } = place;
  renew(place, machine);
  const others = releasesIn(folder).filter((other) => other !== name);
  for (const other of others.slice(keep - 1)) await removeRelease(folder, other, machine);
}

async function removeRelease(folder: string, name: string, machine: Machine): Promise<void> {
  for (const beside of ['new', 'old'] as const) await removeTree(`${folder}/${besideName(name, beside)}`, machine);
  await removeTree(`${folder}/${name}`, machine);
  removeEntry(`${folder}/${besideName(name, 'list')}`);
  machine.changedDirectory(folder);
}

async function removeReleases({ body }: Declared, machine: Machine, except: readonly string[] = []): Promise<void> {
  const folder = trustedPath(machine.walk, `${body.path}/${releasesName}`, 'null');
  if (folder === null) return;
  for (const name of releasesIn(folder)) if (!except.includes(name)) await removeRelease(folder, name, machine);
}

/** Removes the tree that the agent unpacked. Keeps an object that others created in its place. */
async function takeAway(resource: Declared, machine: Machine): Promise<void> {
  const folder = trustedPath(machine.walk, folderOf(resource.body.path), 'null');
  if (folder === null) return;
  const place = { folder, name: posix.basename(resource.body.path) };
  await removeTree(`${folder}/${besideName(place.name, 'old')}`, machine);
  await moveAway(place, machine);
  removeEntry(`${folder}/${besideName(place.name, 'list')}`);
  await removeTree(`${folder}/${besideName(place.name, 'old')}`, machine);
}

/** Removes the trees that the agent unpacked, and restores the original object. */
export async function removeArchive(
  resource: Declared,
  before: ArchiveBefore,
  seen: SeenArchive,
  machine: Machine,
): Promise<Outcome> {
  const { path } = resource.body;
  const folder = trustedPath(machine.walk, folderOf(path), 'null');
  if (folder === null) return {};
  const name = posix.basename(path);
  if (before.was === 'tree') return {};
  if (before.was === 'release') {
    const { link, names } = before;
    await setLink(resource, link, machine);
    const releases = trustedPath(machine.walk, `${path}/${releasesName}`, 'null');
    const restored = names.find((other) => targetOf(other) === link);
    if (releases !== null && restored !== undefined) renew({ folder: releases, name: restored }, machine);
    await removeReleases(resource, machine, names);
    return {};
  }
  if (before.was === 'releases') {
    await setLink(resource, before.link, machine);
    await removeReleases(resource, machine);
    if (before.made.releases) removeIfEmpty(`${folder}/${name}/${releasesName}`);
    if (before.made.root) removeIfEmpty(`${folder}/${name}`);
    machine.changedDirectory(folder);
    return {};
  }
  const kept = `${folder}/${besideName(name, 'before')}`;
  const old = `${folder}/${besideName(name, 'old')}`;
  await removeTree(old, machine);
  if (before.inode === null || seen.kept !== null) {
    if (statusOf(`${folder}/${name}`) !== null) moveEntry(`${folder}/${name}`, old);
    if (before.inode !== null) moveEntry(kept, `${folder}/${name}`);
  }
  removeEntry(`${folder}/${besideName(name, 'list')}`);
  machine.changedDirectory(folder);
  await removeTree(old, machine);
  await removeTree(`${folder}/${besideName(name, 'new')}`, machine);
  return {};
}
