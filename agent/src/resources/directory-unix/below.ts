import { type FieldChange, visibleLine } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { readMountPoints } from '../../../../lib/src/mount-points.ts';
import { HostFailure, NotADirectory } from '../../host/failure.ts';
import { asCreated, decideOwnership, exposes } from '../../host/files/decide-ownership.ts';
import { hashLarge, type Inspected, inodeOf, inspect, type Ownership, statusesIn } from '../../host/files/inspect.ts';
import { agentName } from '../../host/trees/tree-names.ts';
import { applyFile, rememberFile } from '../file-unix/apply.ts';
import { diffFile } from '../file-unix/diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from '../file-unix/removal.ts';
import { type FileBefore, look, type SeenFile } from '../file-unix/seen.ts';
import {
  diffOwnership,
  exposure,
  lookUpOwnership,
  type OwnershipBefore,
  type OwnershipFields,
  parseMode,
  recordedOwnership,
  type SeenOwnership,
  targetOwnership,
  touchOwnership,
} from '../provider/ownership.ts';
import type { Circumstances, Difference, Machine } from '../provider/provider.ts';
import { filesMatching } from './file-patterns.ts';
import { createdMode, make, object } from './place.ts';
import { isSystemDirectory, permissionsOf } from './purge.ts';

/**
 * Sets the owner, group, and permissions of everything below a directory. Each file is changed and restored like a
 * declared file, so that a user of the directory cannot gain access to the files of others.
 */

type Declared = ResolvedResource<'directory-unix'>;
type FoundFile = Extract<Inspected, { type: 'file' }>;
type FoundDirectory = Extract<Inspected, { type: 'directory' }>;

/** An entry that differs from the declaration. Directories come before their entries. */
export type BelowEntry = { path: string; fields: OwnershipFields; changes: FieldChange[] } & (
  | { is: 'file'; seen: SeenFile & { found: FoundFile } }
  | { is: 'directory'; found: FoundDirectory; ownership: SeenOwnership }
);

export interface Below {
  entries: BelowEntry[];
  /** Why the entries cannot be changed: there are too many, so only some were compared. Null if they can be changed. */
  refusal: string | null;
  /** Whether the entries are not compared, because the declared owner or group does not exist yet. */
  isUnknown: boolean;
}

/** The tree exceeds a limit. */
class TooLarge extends HostFailure {}

/** The first recorded state of a changed entry. */
export type BelowBefore = { path: string } & (
  | { is: 'file'; inode: string; before: FileBefore }
  | { is: 'directory'; inode: string; before: OwnershipBefore }
);

export type RememberedEntries = {
  below?: BelowBefore[];
  /** Number of changes whose original state is not recorded, because there were too many. */
  unrecorded?: number;
};

export interface RestorableEntries {
  paths: string[];
  /** Number of entries that are not restored, because the record does not show that they have their former content. */
  kept: number;
}

/** Maximum number of entries below the directory. */
const maxEntries = 100_000;
/** Maximum number of entries to change, because the journal contains the original state of each. */
const maxChanges = 5_000;
/** Maximum total size of the files to hash, in bytes. */
const maxHashed = 1024 * 1024 * 1024;
/** Maximum depth below the directory. Opening an entry costs one system call for each component of its path. */
const maxDepth = 64;
const maxShown = 200;

/** @throws HostFailure if the directory must not be changed recursively, or a field is missing */
export function checkRecursive({ body }: Declared): void {
  if (body.file_mode != null && (parseMode(body.file_mode) & 0o7000) !== 0)
    throw new HostFailure('`file_mode` must not set a set-ID bit or the sticky bit');
  if (body.recursive !== true) return;
  if (isSystemDirectory(body.path))
    throw new HostFailure(`${body.path} is a system directory: declare recursive for a directory below it`);
  if ((body.owner ?? body.group ?? body.mode ?? body.file_mode) == null)
    throw new HostFailure('`recursive` requires owner, group, mode, or file_mode');
  if (body.only != null && (body.owner ?? body.group ?? body.file_mode) == null)
    throw new HostFailure('`only` requires owner, group, or file_mode, which the files get');
}

const directoryFields = ({ owner, group, mode }: ResourceBodies['directory-unix']): OwnershipFields => ({
  ...(owner == null ? {} : { owner }),
  ...(group == null ? {} : { group }),
  ...(mode == null ? {} : { mode }),
});
const fileFields = ({ owner, group, file_mode }: ResourceBodies['directory-unix']): OwnershipFields =>
  directoryFields({
    path: '',
    ...(owner == null ? {} : { owner }),
    ...(group == null ? {} : { group }),
    ...(file_mode == null ? {} : { mode: file_mode }),
  });

const updateOf = (changes: readonly FieldChange[]): Difference => ({
  ...{ action: 'update', changes: [...changes], diff: null },
});

/** Returns an entry as a separate resource, so that it is changed and restored like a declared file. */
const asFile = (path: string, fields: OwnershipFields): ResolvedResource<'file-unix'> => ({
  ...{ key: `path:${path}`, module: '', id: null, name: null, type: 'file-unix', identity: path },
  body: { path, ...fields } as ResourceBodies['file-unix'],
  ...{ depends_on: [], reload_on: [], restart_on: [], rerun_on: [], sensitive_fields: [] },
});

/**
 * Returns the entries below a directory that differ from the declaration. Skips links, devices, sockets, other file
 * systems, and everything that other resources declare.
 * @throws HostFailure if the path of the directory leads through a link
 */
export function entriesBelow({ body }: Declared, machine: Machine): Below {
  const root = body.path;
  const open = machine.walk.open(root, 'null');
  if (open === null) return { entries: [], refusal: null, isUnknown: false };
  const realPath = open.path;
  machine.walk.release(open);
  if (realPath !== root)
    throw new HostFailure(`${root} leads to ${realPath} by a symbolic link: declare recursive for ${realPath}`);
  const of = { file: fileFields(body), directory: directoryFields(body) };
  const wanted = lookUpOwnership(of.directory, null, machine.accounts);
  // The accounts may be created by an earlier resource, after which the directory is observed again.
  if (wanted.wantedUid === null || wanted.wantedGid === null) return { entries: [], refusal: null, isUnknown: true };
  const foreign = ownTrees(root, machine);
  const mounted = readMountPoints();
  const entries: BelowEntry[] = [];
  let visited = 0;
  const matches = body.only == null ? null : filesMatching(body.only);
  const isMeant = (path: string): boolean => matches === null || matches(path.slice(root.length + 1));
  const visit = (directory: string, depth: number, device: number | null): void => {
    if (depth > maxDepth) throw new TooLarge(`${root} has directories that are nested more than ${maxDepth} deep`);
    const listed = listedIn(directory, directory === root, maxEntries - visited, machine);
    if (listed === null) throw new TooLarge(`${root} has more than ${maxEntries} entries`);
    visited += listed.entries.length;
    // A file system was mounted here after the directory was compared.
    if (device !== null && listed.device !== device) return;
    for (const { name, type, ...standing } of listed.entries) {
      const path = `${directory}/${name}`;
      if (agentName.test(name) || foreign.has(path) || mounted.has(path)) continue;
      if (type === 'directory') {
        // In an overlay, only directories have the device number of the file system.
        if (standing.device !== listed.device) continue;
        if (body.only == null && !machine.declaredDirectory(path)) addDirectory(path, of.directory, machine, entries);
        visit(path, depth + 1, listed.device);
      } else if (type === 'file' && differs(standing, of.file, wanted) && !machine.manages(path) && isMeant(path))
        addFile(path, of.file, machine, entries);
      if (entries.length > maxChanges)
        throw new TooLarge(
          `${root} has more than ${maxChanges} entries to change, and the agent records the former state of each: change them by hand first`,
        );
    }
  };
  try {
    visit(root, 0, null);
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
    return { entries, refusal: error.message, isUnknown: false };
  }
  return { entries, refusal: null, isUnknown: false };
}

/**
 * @throws HostFailure if the root cannot be listed. Other directories may be FUSE mounts, or a user may have replaced
 *   them.
 */
function listedIn(directory: string, isRoot: boolean, limit: number, machine: Machine): ReturnType<typeof statusesIn> {
  try {
    const listed = statusesIn(machine.walk, directory, limit);
    for (const name of listed?.unknown ?? [])
      machine.warn(
        `${visibleLine(`${directory}/${name}`)} is not compared: its name is not UTF-8, or it cannot be read`,
      );
    return listed;
  } catch (error) {
    if (isRoot || !(error instanceof HostFailure)) throw error;
    machine.warn(`${visibleLine(directory)} is not compared: ${error.message}`);
    return { device: 0, entries: [], unknown: [] };
  }
}

/** Returns the directories whose entries belong to other resources. */
function ownTrees(root: string, machine: Machine): ReadonlySet<string> {
  const trees = (['archive', 'git'] as const).flatMap((type) =>
    machine.resourcesOf(type).map(({ identity }) => identity),
  );
  const recursive = machine
    .resourcesOf('directory-unix')
    .filter(({ body }) => (body as ResourceBodies['directory-unix']).recursive === true)
    .map(({ identity }) => identity);
  return new Set([...trees, ...recursive.filter((path) => path !== root)]);
}

const differs = (
  { uid, gid, mode }: { uid: number; gid: number; mode: number },
  fields: OwnershipFields,
  { wantedUid, wantedGid }: SeenOwnership,
): boolean =>
  (wantedUid !== undefined && uid !== wantedUid) ||
  (wantedGid !== undefined && gid !== wantedGid) ||
  (fields.mode != null && mode !== parseMode(fields.mode));

function addDirectory(path: string, fields: OwnershipFields, machine: Machine, entries: BelowEntry[]): void {
  const found = inspect(machine.walk, path, false);
  if (found.type !== 'directory') return;
  const ownership = lookUpOwnership(fields, found, machine.accounts);
  const { changes } = diffOwnership(fields, found, ownership, object);
  if (changes.length > 0) entries.push({ path, fields, changes, is: 'directory', found, ownership });
}

function addFile(path: string, fields: OwnershipFields, machine: Machine, entries: BelowEntry[]): void {
  // The result is not a promise, because the content is not read.
  const seen = look(asFile(path, fields), machine, false, []) as SeenFile;
  if (seen.found.type !== 'file') return;
  const { changes } = diffFile(asFile(path, fields), seen, { purpose: 'drift' });
  if (changes.length > 0) entries.push({ path, fields, changes, is: 'file', seen: { ...seen, found: seen.found } });
}

/**
 * Returns the planned change, or the drift, of the entries below the directory.
 * @param purged entries that are removed instead
 * @throws HostFailure if there are too many entries, or a change would expose a file that only root can read, unless
 *   this is a drift check
 */
export function belowChange(
  { entries: all, refusal, isUnknown }: Below,
  purged: readonly { path: string }[],
  { purpose }: Pick<Circumstances, 'purpose'>,
): { changes: FieldChange[]; diff: string | null } {
  const gone = new Set(purged.map(({ path }) => path));
  const entries = all.filter(({ path }) => !gone.has(path));
  if (purpose !== 'drift' && refusal !== null) throw new HostFailure(refusal);
  // The missing account is drift of the directory itself.
  if (purpose !== 'drift' && isUnknown) {
    const to = 'unknown until the owner and group exist';
    return { changes: [{ field: 'recursive', from: null, to }], diff: null };
  }
  if (entries.length === 0 && refusal === null) return { changes: [], diff: null };
  if (purpose !== 'drift') for (const entry of entries) refuseExposure(entry);
  const lines = entries.slice(0, maxShown).map(({ path, changes }) => {
    const shown = changes.map(({ field, from, to }) => `${field} ${from} → ${to}`).join(', ');
    return ` ${visibleLine(path)}: ${shown}\n`;
  });
  const more = entries.length > maxShown ? `\\ ${entries.length - maxShown} more\n` : '';
  const from = `${refusal === null ? '' : 'at least '}${entries.length} different ${entries.length === 1 ? 'entry' : 'entries'} below`;
  return { changes: [{ field: 'recursive', from, to: 'as declared' }], diff: `${lines.join('')}${more}` };
}

function refuseExposure(entry: BelowEntry): void {
  const { path, fields } = entry;
  if (entry.is === 'file') {
    diffFile(asFile(path, fields), entry.seen, { purpose: 'apply' });
    return;
  }
  const target = targetOwnership(fields, entry.found, entry.ownership, object, createdMode);
  if (exposes(entry.found, target, 'directory')) throw exposure(path, entry.ownership.ownerName, target);
}

/**
 * Records the first state of each entry, of at most `maxChanges`. Drops the records of entries that no longer exist,
 * such as rotated logs.
 */
export async function rememberBelow(
  entries: readonly BelowEntry[],
  earlier: RememberedEntries,
  machine: Machine,
): Promise<RememberedEntries> {
  const kept = (earlier.below ?? []).filter((record) => isStillThere(record, machine));
  const records = new Map(kept.map((record) => [record.path, record]));
  let { unrecorded = 0 } = earlier;
  let unhashed = 0;
  let bytes = 0;
  // Programs may append to files, such as logs, at any time. A record without a hash does not restore the owner.
  const hashFile: typeof hashLarge = async (walk, path, seen, size) => {
    let sha256: string | null = null;
    try {
      if (bytes + size <= maxHashed) sha256 = await hashLarge(walk, path, seen, size);
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
    }
    if (sha256 === null) unhashed++;
    else bytes += size;
    return sha256;
  };
  for (const entry of entries) {
    const inode = inodeOf(entry.is === 'file' ? entry.seen.found : entry.found);
    const known = records.get(entry.path);
    // Another file or directory at the path has no earlier state.
    const same = known?.is === entry.is && known.inode === inode ? known : null;
    if (known === undefined && records.size >= maxChanges) unrecorded++;
    else records.set(entry.path, await recordOf(entry, same, inode, machine, hashFile));
  }
  if (unhashed > 0)
    machine.warn(`${unhashed} files changed while they were read, or are too large: their owner will not be restored`);
  return { below: [...records.values()], ...(unrecorded === 0 ? {} : { unrecorded }) };
}

async function recordOf(
  entry: BelowEntry,
  known: BelowBefore | null,
  inode: string,
  machine: Machine,
  hashFile: typeof hashLarge,
): Promise<BelowBefore> {
  const { path, fields, changes } = entry;
  if (entry.is === 'file') {
    const before = known?.is === 'file' ? known.before : null;
    const record = await rememberFile(asFile(path, fields), entry.seen, updateOf(changes), before, machine, hashFile);
    return { path, is: 'file', inode, before: record };
  }
  const { found, ownership } = entry;
  const { uid, gid, mode } = found;
  const names = { ownerName: ownership.ownerName ?? String(uid), groupName: ownership.groupName ?? String(gid) };
  const before = known?.is === 'directory' ? known.before : { uid, gid, mode, ...names, touched: [] };
  const changing = new Set(changes.map(({ field }) => field));
  const touched = touchOwnership(before, changing, false, found, ownership);
  if (losesAclFor(before, changing, found))
    touched.mode &= ~(found.mode & ~(await permissionsOf(path, found, machine.walk)));
  return { path, is: 'directory', inode, before: touched };
}

/** Reports whether the directory now loses its first owner and thereby its ACL, which a removal does not restore. */
export const losesAclFor = (before: OwnershipBefore, changing: ReadonlySet<string>, { uid }: Ownership): boolean =>
  changing.has('owner') && !before.touched.includes('owner') && uid !== asCreated(0).uid;

function isStillThere({ path, is, inode }: BelowBefore, machine: Machine): boolean {
  try {
    const found = inspect(machine.walk, path, false);
    return found.type === is && inodeOf(found) === inode;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    // A file with a second name still exists; a path that leads through a file or a user's link does not.
    return !(error instanceof NotADirectory);
  }
}

/**
 * Changes the entries, from the innermost to the outermost, so that no user who becomes the owner of a directory can
 * rename entries that are changed later. Leaves entries that were replaced since they were observed.
 * @returns the number of these entries
 */
export async function setBelow(entries: readonly BelowEntry[], machine: Machine): Promise<number> {
  let left = 0;
  for (const entry of [...entries].reverse()) {
    try {
      await setEntry(entry, machine);
    } catch (error) {
      // Otherwise, a user could prevent all changes to the other entries.
      if (!(error instanceof HostFailure) || isAsObserved(entry, machine)) throw error;
      machine.warn(`${visibleLine(entry.path)} is not changed: ${error.message}`);
      left++;
    }
  }
  return left;
}

async function setEntry(entry: BelowEntry, machine: Machine): Promise<void> {
  const { path, fields } = entry;
  if (inspect(machine.walk, path, false).type === 'absent') return;
  if (entry.is === 'file')
    return void (await applyFile(asFile(path, fields), entry.seen, updateOf(entry.changes), machine));
  const target = targetOwnership(fields, entry.found, entry.ownership, object, createdMode);
  await make(path, entry.found, { ...target, keepsMode: fields.mode == null }, machine);
}

function isAsObserved(entry: BelowEntry, machine: Machine): boolean {
  const seen = entry.is === 'file' ? entry.seen.found : entry.found;
  try {
    const now = inspect(machine.walk, entry.path, false);
    if (now.type !== seen.type || inodeOf(now) !== inodeOf(seen)) return false;
    return now.uid === seen.uid && now.gid === seen.gid && now.mode === seen.mode;
  } catch (error) {
    if (error instanceof HostFailure) return false;
    throw error;
  }
}

/** Restores or compares one recorded entry. */
interface Restoration {
  /** `kept`: the record does not show that the previous owner may have the current content. */
  verdict: 'done' | 'due' | 'kept';
  restore(): Promise<void>;
}
const done: Restoration = { verdict: 'done', restore: async () => {} };

async function restorationOf(record: BelowBefore, machine: Machine): Promise<Restoration> {
  const { path } = record;
  try {
    return record.is === 'file' ? await fileRestoration(record, machine) : directoryRestoration(record, machine);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    machine.warn(`${path} is not restored: ${error.message}`);
    return { ...done, verdict: 'kept' };
  }
}

async function fileRestoration(
  { path, before }: Extract<BelowBefore, { is: 'file' }>,
  machine: Machine,
): Promise<Restoration> {
  if (machine.declared(path)) return done;
  const file = asFile(path, {});
  const seen = await observeFileForRemoval(file, before, machine);
  if (seen.found.type !== 'file') return done;
  const difference = diffFileRemoval(file, before, seen, machine.copies);
  if (difference.action === 'none') return done;
  return {
    verdict: 'due',
    restore: async () => void (await removeOrRestoreFile(file, before, seen, difference, machine)),
  };
}

function directoryRestoration(
  { path, inode, before }: Extract<BelowBefore, { is: 'directory' }>,
  machine: Machine,
): Restoration {
  if (machine.declaredDirectory(path)) return done;
  const found = inspect(machine.walk, path, false);
  if (found.type !== 'directory' || inodeOf(found) !== inode) return done;
  const target = decideOwnership(recordedOwnership(before, found), found, object, asCreated(before.mode));
  const isSame = found.uid === target.uid && found.gid === target.gid && found.mode === target.mode;
  return isSame ? done : { verdict: 'due', restore: () => make(path, found, target, machine) };
}

export async function entriesToRestore(records: readonly BelowBefore[], machine: Machine): Promise<RestorableEntries> {
  const restorable: RestorableEntries = { paths: [], kept: 0 };
  for (const record of records) {
    const { verdict } = await restorationOf(record, machine);
    if (verdict === 'due') restorable.paths.push(record.path);
    if (verdict === 'kept') restorable.kept++;
  }
  return restorable;
}

/** Restores the entries that have their former content, the innermost first. */
export async function restoreBelow(records: readonly BelowBefore[], machine: Machine): Promise<void> {
  for (const record of [...records].reverse()) {
    const { verdict, restore } = await restorationOf(record, machine);
    if (verdict === 'due') await restore();
  }
}
