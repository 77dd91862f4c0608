import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure, NotADirectory } from '../../host/failure.ts';
import type { Acl } from '../../host/files/acl-entries.ts';
import type { Attribute } from '../../host/files/attributes.ts';
import { asCreated, decideOwnership, exposes } from '../../host/files/decide-ownership.ts';
import {
  type Inspected,
  inodeOf,
  inspect,
  inspectOpen,
  isEmptyDirectory,
  listDirectory,
  type Ownership,
} from '../../host/files/inspect.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { removeDirectory } from '../../host/files/remove.ts';
import {
  checkAcl,
  diffAcl,
  diffAclRemoval,
  restoredAcl,
  type SeenAcl,
  wantedEntries,
  widened,
  withinMask,
  withoutMask,
} from '../provider/acl.ts';
import {
  changeWithAttributes,
  checkAttributes,
  concernsAttributes,
  diffAttributes,
  diffAttributesRemoval,
  lookAtAttributes,
  rememberAttributes,
  type SeenAttributes,
} from '../provider/attributes.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  allTouched,
  diffOwnership,
  exposure,
  lookUpOwnership,
  type OwnershipBefore,
  ownershipChanges,
  recordedOwnership,
  type SeenOwnership,
  targetOwnership,
  touchOwnership,
} from '../provider/ownership.ts';
import {
  type Difference,
  type Machine,
  nothing,
  type Outcome,
  presenceDrift,
  typeDrift,
} from '../provider/provider.ts';
import {
  type Below,
  belowChange,
  checkRecursive,
  entriesBelow,
  entriesToRestore,
  losesAclFor,
  type RememberedEntries,
  type RestorableEntries,
  rememberBelow,
  restoreBelow,
  setBelow,
} from './below.ts';
import { createdMode, lookAtAcl, make, object } from './place.ts';
import {
  checkEntries,
  checkPurge,
  type ForeignEntry,
  foreignEntries,
  missingEntries,
  type PurgedEntry,
  permissionsOf,
  purgeChange,
  rememberEntries,
  removeEntries,
  restoreEntries,
} from './purge.ts';
import { checkTree, observeTree, removeTree, type Tree, treeChange } from './tree.ts';

export interface SeenDirectory {
  found: Inspected;
  ownership: SeenOwnership;
  /**
   * Paths below the directory that would remain after its removal; listed only if the directory may be removed. Omits
   * subdirectories that the agent created, but not their contents. Null if there are too many.
   */
  holds: string[] | null;
  /** Everything below the directory; listed only if `force` removes it. */
  tree?: Tree;
  /** The entries to purge; listed only if the directory is purged. */
  foreign?: ForeignEntry[];
  /** The purged entries that a removal restores. */
  missing?: PurgedEntry[];
  /**
   * The entries below the directory for which the owner or permissions change; listed only if the resource is
   * recursive.
   */
  below?: Below;
  /** The entries below the directory to restore on removal. */
  restorable?: RestorableEntries;
  /** The ACL; observed only if the resource declares it, or a removal restores it. */
  acl?: SeenAcl;
  /** The attributes; observed only if the resource declares them, or a removal restores them. */
  attributes?: SeenAttributes;
  /** Whether the directory is empty; checked only if a user may have moved it to this path. */
  isEmpty?: boolean;
}

/** State of a directory before the agent first changed it. */
export type DirectoryBefore = (
  | { was: 'absent' }
  /** `inode` identifies the directory that had this owner. It is absent in records from release 0.1 or earlier. */
  | ({ was: 'directory'; inode?: string; purged?: PurgedEntry[]; acl?: Acl } & RememberedEntries & OwnershipBefore)
) & {
  /** The attributes, if the resource declared some. Empty if there was no directory. */
  attributes?: Attribute[];
};

type Declared = ResolvedResource<'directory-unix'>;
const pathOf = (resource: Declared): string => resource.body.path;

/**
 * Maximum number of entries to list. A directory with more entries counts as not empty.
 */
const maxListed = 10_000;

const wrongType = (path: string, found: Inspected): HostFailure =>
  new HostFailure(
    `${path} is a ${found.type === 'other' ? found.kind : found.type === 'symlink' ? 'symbolic link' : found.type}, not a directory; it is not changed. Remove it by hand, or change its declaration.`,
  );

const notEmpty = (path: string): HostFailure =>
  new HostFailure(
    `${path} is not removed: it is not empty, and its content could not be restored; declare \`force: true\` to remove it with everything in it`,
  );

const isForced = ({ body }: Declared): boolean => body.ensure === 'absent' && body.force === true;

export const directoryUnix = defineProvider<'directory-unix', SeenDirectory, DirectoryBefore>({
  type: 'directory-unix',
  fields: {
    path: 'text',
    source: 'text?',
    purge: 'boolean?',
    recursive: 'boolean?',
    only: 'list?',
    file_mode: 'text?',
    owner: 'text?',
    group: 'text?',
    mode: 'text?',
    acl: 'list?',
    attributes: 'list?',
    force: 'boolean?',
    ensure: 'text?',
  },
  path: pathOf,
  watched: ({ body: { path, purge } }) => (purge === true ? [path, `${path}/`] : [path]),

  check(resource) {
    checkPath(pathOf(resource));
    checkAcl(resource.body.acl, 'directory');
    checkAttributes(resource.body.attributes);
    if (resource.body.purge === true) checkPurge(pathOf(resource));
    if (isForced(resource)) checkTree(pathOf(resource));
    checkRecursive(resource);
  },

  observe(resource, { succeeded }, machine) {
    const body = resource.body;
    const seen = observeWithoutAttributes(resource, machine);
    return concernsAttributes(body, succeeded) ? withAttributes(resource, seen, machine) : seen;
  },
  diff(resource, seen, circumstances) {
    const body = resource.body;
    const { found } = seen;
    if (body.ensure === 'absent') {
      if (found.type === 'absent') return nothing();
      if (circumstances.purpose === 'drift') return presenceDrift();
      if (found.type !== 'directory') throw wrongType(body.path, found);
      const ensure = { field: 'ensure', from: 'present', to: 'absent' };
      if (seen.tree !== undefined) {
        const { changes, diff } = treeChange(body.path, seen.tree);
        return { action: 'remove', changes: [ensure, ...changes], diff };
      }
      const left = leftIn(body.path, seen.holds, circumstances);
      if (left !== 0) throw notEmpty(body.path);
      return { action: 'remove', changes: [ensure], diff: null };
    }
    if (found.type !== 'absent' && found.type !== 'directory') {
      if (circumstances.purpose === 'drift') return typeDrift(found, 'directory');
      throw wrongType(body.path, found);
    }
    const here = found.type === 'absent' ? null : withoutMask(found, seen.acl);
    const ownership = diffOwnership(body, here, seen.ownership, object);
    const changes: FieldChange[] = [...ownership.changes];
    if (here === null) changes.unshift({ field: 'ensure', from: 'absent', to: 'present' });
    const target = targetOwnership(body, here, seen.ownership, object, createdMode);
    const acl = diffAcl(body.path, seen.acl, target.mode, circumstances.purpose === 'drift');
    const attributes = diffAttributes(body.path, seen.attributes, body.attributes, circumstances.purpose === 'drift');
    changes.push(...acl.changes, ...attributes.changes);
    const purge = purgeChange(seen.foreign ?? []);
    changes.push(...purge.changes);
    // Entries that are purged need no owner.
    const none = { changes: [], diff: null };
    const below = seen.below === undefined ? none : belowChange(seen.below, seen.foreign ?? [], circumstances);
    changes.push(...below.changes);
    if (changes.length === 0) return nothing();
    if (circumstances.purpose !== 'drift') checkEntries(found, seen.foreign ?? []);
    if (here !== null && circumstances.purpose !== 'drift') refuseExposure(body.path, seen, openedBy(target, seen));
    const awaits = [...ownership.awaits, ...acl.awaits, ...attributes.awaits];
    return {
      action: here === null ? 'create' : 'update',
      changes,
      diff: purge.diff === null && below.diff === null ? null : `${purge.diff ?? ''}${below.diff ?? ''}`,
      ...(awaits.length === 0 ? {} : { awaits }),
    };
  },

  async remember(resource, seen, difference, before, machine) {
    const record = await rememberFields(resource, seen, difference, before, machine);
    return rememberAttributes(record, seen.attributes);
  },

  claim(resource, machine) {
    if (machine.ourDirectories.has(pathOf(resource))) return { was: 'absent' };
    if (resource.body.purge !== true) return null;
    // Without a record, the first purge would not keep copies.
    const { found, ownership } = look(resource, machine);
    return found.type === 'directory' ? recordOf(found, ownership) : null;
  },

  apply(resource, seen, _difference, machine) {
    const { path, ensure, attributes } = resource.body;
    const stays = ensure === 'absent' ? null : attributes;
    return changeWithAttributes(objectAt(path, seen), stays, machine, () => applyDirectory(resource, seen, machine));
  },

  async observeForRemoval(resource, before, machine) {
    const path = pathOf(resource);
    let seen: SeenDirectory;
    try {
      seen = look(resource, machine);
    } catch (error) {
      // The parent directory no longer exists either.
      if (!(error instanceof NotADirectory) || before.was !== 'absent') throw error;
      return { found: { type: 'absent' }, ownership: { ownerName: null, groupName: null }, holds: null };
    }
    // A directory that the agent created as a parent is not the recorded directory.
    if (before.was === 'directory' && (machine.ourDirectories.has(path) || machine.freshDirectories.has(path)))
      return { ...seen, found: { type: 'absent' } };
    const attributes =
      before.attributes === undefined ? {} : { attributes: await lookAtAttributes(path, seen.found, machine) };
    if (before.was === 'absent' && seen.found.type === 'directory')
      return { ...seen, ...attributes, holds: contents(pathOf(resource), machine) };
    if (before.was === 'absent') return { ...seen, ...attributes };
    return {
      ...seen,
      ...attributes,
      ...(before.purged === undefined ? {} : { missing: missingEntries(before.purged, machine) }),
      ...(before.below === undefined ? {} : { restorable: await entriesToRestore(before.below, machine) }),
      ...(before.acl === undefined ? {} : { acl: await lookAtAcl(path, seen.found, [], machine) }),
    };
  },

  diffRemoval(resource, before, seen, circumstances) {
    const path = pathOf(resource);
    const found = withoutMask(seen.found, seen.acl);
    if (before.was === 'absent') {
      if (found.type === 'absent') return nothing('already removed');
      if (found.type !== 'directory') return nothing('already removed; the agent did not create the current object');
      const left = leftIn(path, seen.holds, circumstances);
      if (left === 0)
        return { action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }], diff: null };
      return { ...nothing('kept, because it is not empty; it is removed once it is empty'), stillOurs: path };
    }
    const missing = seen.missing?.length ?? 0;
    const restored: FieldChange[] =
      missing === 0
        ? []
        : [{ field: 'purge', from: null, to: `${missing} former ${missing === 1 ? 'entry' : 'entries'}` }];
    if (found.type === 'absent') {
      if (resource.body.ensure !== 'absent') return nothing('already removed');
      return {
        action: 'remove',
        changes: [{ field: 'ensure', from: 'absent', to: 'present' }],
        diff: null,
        message: 'restores the original state',
      };
    }
    if (found.type !== 'directory') throw wrongType(path, found);
    const target = ownershipBack(before, found);
    const names = { from: seen.ownership, owner: before.ownerName, group: before.groupName };
    const { paths = [], kept = 0 } = seen.restorable ?? {};
    const below: FieldChange[] =
      paths.length === 0 ? [] : [{ field: 'recursive', from: null, to: `${countOf(paths.length)} as before` }];
    const acl = before.acl === undefined ? [] : diffAclRemoval(path, before.acl, seen.acl);
    const attributes = diffAttributesRemoval(path, before.attributes, seen.attributes);
    const changes = [...ownershipChanges(found, target, names), ...acl, ...attributes, ...restored, ...below];
    const { unrecorded = 0 } = before;
    const left = [
      ...(kept === 0 ? [] : [`${countOf(kept)} stay as they are, because their content has changed`]),
      ...(unrecorded === 0
        ? []
        : [`${unrecorded} changes below are not restored, because the agent had recorded too many entries`]),
    ];
    if (changes.length === 0) return nothing(['already in its original state', ...left].join('; '));
    if (inodeOf(found) !== before.inode)
      refuseExposure(path, seen, acl.length === 0 ? target : widened(target, before.acl?.entries ?? []));
    const message = ['restores the original state', ...left].join('; ');
    return { action: 'remove', changes, diff: null, message };
  },

  remove(resource, before, seen, _difference, machine) {
    const former = before.was === 'directory' ? before.attributes : null;
    return changeWithAttributes(objectAt(pathOf(resource), seen), former, machine, () =>
      removeOrRestore(pathOf(resource), before, seen, machine),
    );
  },
});

/** Observes everything except the attributes. */
function observeWithoutAttributes(resource: Declared, machine: Machine): SeenDirectory | Promise<SeenDirectory> {
  const body = resource.body;
  const seen = look(resource, machine);
  if (isForced(resource) && seen.found.type === 'directory') return { ...seen, tree: observeTree(body.path, machine) };
  if (body.ensure === 'absent' && seen.found.type === 'directory')
    return { ...seen, holds: contents(body.path, machine) };
  // A directory that this operation created as a parent counts as created by its own resource. The plan, in which it
  // was still missing, reports the same.
  const isFresh = machine.freshDirectories.has(body.path);
  const isPurged = body.purge === true && body.ensure !== 'absent' && seen.found.type === 'directory';
  const purged = isPurged ? { foreign: foreignEntries(body.path, machine) } : {};
  const isRecursive = body.recursive === true && body.ensure !== 'absent' && seen.found.type === 'directory';
  const below = isRecursive ? { below: entriesBelow(resource, machine) } : {};
  const all: SeenDirectory = { ...seen, ...purged, ...below, ...(isFresh ? { found: { type: 'absent' } } : {}) };
  if (body.acl == null || body.ensure === 'absent') return all;
  return lookAtAcl(body.path, all.found, body.acl, machine).then((acl) => ({ ...all, acl }));
}

async function withAttributes(
  resource: Declared,
  seen: SeenDirectory | Promise<SeenDirectory>,
  machine: Machine,
): Promise<SeenDirectory> {
  const all = await seen;
  return { ...all, attributes: await lookAtAttributes(pathOf(resource), all.found, machine) };
}

const objectAt = (path: string, { found, attributes }: SeenDirectory) =>
  ({ path, found, type: 'directory', attributes }) as const;

async function rememberFields(
  resource: Declared,
  seen: SeenDirectory,
  difference: Difference,
  before: DirectoryBefore | null,
  machine: Machine,
): Promise<DirectoryBefore> {
  if (before?.was === 'absent') return before;
  const { ownership, acl } = seen;
  const found = withoutMask(seen.found, acl);
  if (found.type === 'absent' || machine.ourDirectories.has(pathOf(resource)))
    return before === null ? { was: 'absent' } : allTouched(before);
  if (found.type !== 'directory') throw wrongType(pathOf(resource), found);
  const record = before ?? recordOf(found, ownership);
  const changing = new Set(difference.changes.map(({ field }) => field));
  const { foreign = [] } = seen;
  const purged = foreign.length > 0 ? { purged: await rememberEntries(foreign, record.purged ?? [], machine) } : {};
  const entries = seen.below?.entries ?? [];
  const below = entries.length > 0 ? await rememberBelow(entries, record, machine) : {};
  const former = record.acl === undefined && acl?.found != null ? { acl: acl.found } : {};
  const owned = { ...record, ...purged, ...below, ...former };
  const touched = touchOwnership(owned, changing, changing.has('ensure'), found, ownership);
  if (owned.acl === undefined && losesAclFor(record, changing, found))
    touched.mode &= ~(found.mode & ~(await permissionsOf(pathOf(resource), found, machine.walk)));
  const isOwnerNew = touched.touched.includes('owner') && !record.touched.includes('owner');
  return isOwnerNew ? { ...touched, inode: inodeOf(found) } : touched;
}

async function applyDirectory(resource: Declared, seen: SeenDirectory, machine: Machine): Promise<Outcome> {
  const body = resource.body;
  if (body.ensure === 'absent') {
    if (isForced(resource)) await removeTree(body.path, machine);
    if (!removeEmptyDirectory(body.path, machine)) throw notEmpty(body.path);
    return {};
  }
  const found = seen.found.type === 'directory' ? seen.found : null;
  removeEntries(seen.foreign ?? [], machine);
  const left = await setBelow(seen.below?.entries ?? [], machine);
  // The last change, so that the new owner cannot rename entries that are changed later.
  const decided = found === null ? null : withoutMask(found, seen.acl);
  const target = targetOwnership(body, decided, seen.ownership, object, createdMode);
  const entries = seen.acl === undefined ? null : wantedEntries(seen.acl, target.mode);
  await make(body.path, found, { ...target, keepsMode: entries === null && body.mode == null }, machine, entries);
  return left === 0 ? {} : { message: `${countOf(left)} changed during the apply and stay as they are; apply again` };
}

async function removeOrRestore(
  path: string,
  before: DirectoryBefore,
  seen: SeenDirectory,
  machine: Machine,
): Promise<Outcome> {
  if (before.was === 'absent') {
    removeOwnEmpty(path, machine);
    if (!removeEmptyDirectory(path, machine))
      throw new HostFailure(`${path} is not removed: a file was just added to it`);
    return {};
  }
  const now = seen.found.type === 'directory' ? seen.found : null;
  await restoreBelow(before.below ?? [], machine);
  const back = ownershipBack(before, now === null ? null : withoutMask(now, seen.acl));
  const acl = before.acl === undefined ? null : restoredAcl(before.acl, back);
  await make(path, now, acl === null ? back : { ...back, mode: acl.mode }, machine, acl?.entries ?? null);
  await restoreEntries(seen.missing ?? [], machine, (below, target) => make(below, null, target, machine));
  return {};
}

const countOf = (count: number): string => (count === 1 ? '1 entry below' : `${count} entries below`);

const recordOf = (
  found: Extract<Inspected, { type: 'directory' }>,
  ownership: SeenOwnership,
): Extract<DirectoryBefore, { was: 'directory' }> => ({
  was: 'directory',
  inode: inodeOf(found),
  uid: found.uid,
  gid: found.gid,
  mode: found.mode,
  ownerName: ownership.ownerName ?? String(found.uid),
  groupName: ownership.groupName ?? String(found.gid),
  touched: [],
});

function look(resource: Declared, machine: Machine): SeenDirectory {
  const path = pathOf(resource);
  let found = inspect(machine.walk, path, false);
  // A link that the path walk follows, such as /var/run, represents its target.
  if (found.type === 'symlink') {
    const target = machine.walk.open(path, 'null');
    if (target !== null) {
      try {
        found = inspectOpen(target);
      } finally {
        machine.walk.release(target);
      }
    }
  }
  const owned = found.type === 'absent' ? null : found;
  const ownership = lookUpOwnership(resource.body, owned, machine.accounts);
  const isEmpty = found.type === 'directory' && found.movable === true && isEmptyDirectory(machine.walk, path, found);
  return { found, ownership, holds: null, ...(isEmpty ? { isEmpty } : {}) };
}

/** Returns permissions that also grant others everything that the declared ACL grants. */
const openedBy = (target: Ownership, { acl }: SeenDirectory): Ownership =>
  acl === undefined ? target : widened(target, wantedEntries(acl, target.mode));

/**
 * @throws HostFailure if the change would expose content that belongs to the agent's user, and another user may have
 * moved the directory to this path
 */
function refuseExposure(path: string, seen: SeenDirectory, target: Ownership): void {
  const { found, isEmpty, ownership } = seen;
  if (found.type === 'directory' && isEmpty !== true && exposes(withinMask(found, seen.acl), target, 'directory'))
    throw exposure(path, ownership.ownerName, target);
}

/**
 * Reports whether the agent created the directory only as a parent and therefore removes it once it is empty. The
 * directory remains while a declared path below it exists, and a declared replacement is created only after its
 * removal.
 */
const goesAlong = (path: string, machine: Machine): boolean =>
  machine.ourDirectories.has(path) && !machine.declaredDirectory(path);

/**
 * Returns the paths that prevent the directory from being removed, including those in subdirectories that the agent
 * created. Returns null if there are too many to list.
 */
function contents(path: string, machine: Machine): string[] | null {
  const names = listDirectory(machine.walk, path, maxListed);
  if (names === null) return null;
  const all: string[] = [];
  for (const name of names) {
    const below = `${path}/${name}`;
    if (!goesAlong(below, machine)) all.push(below);
    else {
      const inside = contents(below, machine);
      if (inside === null || all.length + inside.length > maxListed) return null;
      all.push(...inside);
    }
  }
  return all;
}

/** Returns the number of entries that will still exist when the directory is due for removal. */
function leftIn(
  path: string,
  entries: string[] | null,
  circumstances: { willBeRemoved(path: string): boolean; willContain(directory: string): boolean },
): number {
  if (entries === null) return Number.POSITIVE_INFINITY;
  const left = entries.filter((below) => !circumstances.willBeRemoved(below)).length;
  return left === 0 && circumstances.willContain(path) ? 1 : left;
}

const ownershipBack = (before: OwnershipBefore, found: Ownership | null): Ownership =>
  decideOwnership(recordedOwnership(before, found), found, object, asCreated(before.mode));

/** Removes empty subdirectories that the agent created only as parents. */
function removeOwnEmpty(path: string, machine: Machine): void {
  for (const name of listDirectory(machine.walk, path, maxListed) ?? []) {
    const below = `${path}/${name}`;
    if (!goesAlong(below, machine)) continue;
    removeOwnEmpty(below, machine);
    removeEmptyDirectory(below, machine);
  }
}

/**
 * Removes a directory if it is empty.
 * @returns whether the directory no longer exists
 * @throws HostFailure
 */
export function removeEmptyDirectory(path: string, machine: Machine): boolean {
  machine.walk.forget();
  const isRemoved = machine.walk.within(path, 'null', (parent, name) => {
    machine.changedDirectory(parent.path);
    return removeDirectory(parent, name);
  });
  return isRemoved ?? true;
}
