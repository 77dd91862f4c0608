import type { FieldChange } from '@muster/protocol';
import type { Accounts } from '../../host/accounts/accounts.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Acl } from '../../host/files/acl-entries.ts';
import {
  asCreated,
  decideOwnership,
  exposes,
  type OwnedObject,
  type RequestedOwnership,
  setIdBits,
} from '../../host/files/decide-ownership.ts';
import type { Ownership } from '../../host/files/inspect.ts';
import type { Difference } from './provider.ts';

/** Declares, observes, and restores the owner, group, and permissions of a file or directory. */

export interface OwnershipFields {
  owner?: string | null;
  group?: string | null;
  mode?: string | null;
}

/** Results of account lookups: declared accounts as IDs, found owners as names. */
export interface SeenOwnership {
  /** Null if the declared account is unknown on this machine. Absent if no account is declared. */
  wantedUid?: number | null;
  wantedGid?: number | null;
  ownerName: string | null;
  groupName: string | null;
}

export function lookUpOwnership(fields: OwnershipFields, found: Ownership | null, accounts: Accounts): SeenOwnership {
  return {
    ...(fields.owner == null ? {} : { wantedUid: accounts.uid(fields.owner) }),
    ...(fields.group == null ? {} : { wantedGid: accounts.gid(fields.group) }),
    ownerName: found === null ? null : accounts.userName(found.uid),
    groupName: found === null ? null : accounts.groupName(found.gid),
  };
}

export const formatMode = (mode: number): string => mode.toString(8).padStart(4, '0');
export const parseMode = (mode: string): number => Number.parseInt(mode, 8);

/** Returns the error that refuses a change that would expose content, with the remedy. */
export const exposure = (path: string, ownerName: string | null, { uid, gid, mode }: Ownership): HostFailure =>
  new HostFailure(
    `${path} is not changed: only ${ownerName} can read it, and a user who can rename files there may have moved it to this path. Inspect it, then delete it or run chown ${uid}:${gid} ${path} && chmod ${formatMode(mode & ~setIdBits)} ${path}; then apply again.`,
  );

const declaredOwnership = (fields: OwnershipFields, seen: SeenOwnership): RequestedOwnership => ({
  ...(fields.owner == null ? {} : { uid: seen.wantedUid ?? null }),
  ...(fields.group == null ? {} : { gid: seen.wantedGid ?? null }),
  ...(fields.mode == null ? {} : { mode: parseMode(fields.mode) }),
});

export function ownershipChanges(
  found: Ownership,
  target: Ownership,
  names: { from: SeenOwnership; owner: string; group: string },
): FieldChange[] {
  const changes: FieldChange[] = [];
  if (found.uid !== target.uid) changes.push({ field: 'owner', from: names.from.ownerName, to: names.owner });
  if (found.gid !== target.gid) changes.push({ field: 'group', from: names.from.groupName, to: names.group });
  return [...changes, ...modeChange(found, target)];
}

export const modeChange = (found: Ownership, target: Ownership): FieldChange[] =>
  found.mode === target.mode ? [] : [{ field: 'mode', from: formatMode(found.mode), to: formatMode(target.mode) }];

/**
 * @param found null if the object is created, so that every declared field changes
 * @returns the changes, and the declared accounts that do not exist
 */
export function diffOwnership(
  fields: OwnershipFields,
  found: Ownership | null,
  seen: SeenOwnership,
  object: OwnedObject,
): { changes: FieldChange[]; awaits: NonNullable<Difference['awaits']> } {
  const changes: FieldChange[] = [];
  const awaits: NonNullable<Difference['awaits']> = [];
  if (fields.owner != null) {
    if (seen.wantedUid == null) awaits.push({ kind: 'accounts', message: `there is no user ${fields.owner}` });
    if (found === null || found.uid !== seen.wantedUid)
      changes.push({ field: 'owner', from: seen.ownerName, to: fields.owner });
  }
  if (fields.group != null) {
    if (seen.wantedGid == null) awaits.push({ kind: 'accounts', message: `there is no group ${fields.group}` });
    if (found === null || found.gid !== seen.wantedGid)
      changes.push({ field: 'group', from: seen.groupName, to: fields.group });
  }
  if (found !== null)
    changes.push(...modeChange(found, decideOwnership(declaredOwnership(fields, seen), found, object, asCreated(0))));
  else if (fields.mode != null) changes.push({ field: 'mode', from: null, to: formatMode(parseMode(fields.mode)) });
  return { changes, awaits };
}

/**
 * Returns the resulting ownership: the declared values; if there are none, the current ones if they may stay;
 * otherwise, the defaults.
 * @param createdMode permissions of a new object
 */
export const targetOwnership = (
  fields: OwnershipFields,
  found: Ownership | null,
  seen: SeenOwnership,
  object: OwnedObject,
  createdMode: number,
): Ownership => decideOwnership(declaredOwnership(fields, seen), found, object, asCreated(createdMode));

const ownershipFields = ['owner', 'group', 'mode'] as const;

/** Recorded owner and permissions of an existing object, and the fields to restore. */
export type OwnershipBefore = {
  uid: number;
  gid: number;
  mode: number;
  ownerName: string;
  groupName: string;
  touched: string[];
};

/**
 * Records the current values of fields that are about to change for the first time.
 * @param changing names of the fields that change
 * @param isReplaced whether the object itself is removed or replaced, which changes its owner, group, and permissions
 */
export function touchOwnership<T extends OwnershipBefore>(
  before: T,
  changing: ReadonlySet<string>,
  isReplaced: boolean,
  found: Ownership,
  seen: SeenOwnership,
): T {
  const record = { ...before };
  const known = (field: string): boolean => before.touched.includes(field);
  const first = (field: string): boolean => (isReplaced || changing.has(field)) && !known(field);
  // All recorded fields must come from the same owner. A later owner may have changed the group and permissions, which
  // must not be recorded for the earlier owner.
  const isOfNewOwner = first('owner') && found.uid !== before.uid;
  const records = (field: string): boolean =>
    isOfNewOwner || (!known('owner') && !known(field) && (first(field) || first('owner')));
  if (first('owner')) Object.assign(record, { uid: found.uid, ownerName: seen.ownerName ?? String(found.uid) });
  if (records('group')) Object.assign(record, { gid: found.gid, groupName: seen.groupName ?? String(found.gid) });
  if (records('mode')) record.mode = found.mode;
  record.touched = [...new Set([...before.touched, ...changing, ...(isReplaced ? ownershipFields : [])])].sort();
  return record;
}

/** Marks every field as changed, because a removed or replaced object loses its owner, group, and permissions. */
export const allTouched = <T extends OwnershipBefore>(before: T): T => ({
  ...before,
  touched: [...new Set([...before.touched, ...ownershipFields])].sort(),
});

/**
 * Returns the part of a record to restore. A recorded owner is restored with the recorded group and permissions,
 * because an interim owner may have chosen the current ones.
 * @param found null if the object is created again
 */
export function recordedOwnership(
  before: OwnershipBefore,
  found: Ownership | null,
): { uid?: number; gid?: number; mode?: number } {
  const { uid, gid, mode, touched } = before;
  if (found === null || touched.includes('owner')) return { uid, gid, mode };
  return { ...(touched.includes('group') ? { gid } : {}), ...(touched.includes('mode') ? { mode } : {}) };
}

/** The complete state of a file at the time when one of its fields was first recorded. */
export type FileState = { uid: number; gid: number; mode: number; sha256: string; size: number; movable?: true };

export type RecordedFile = OwnershipBefore & {
  /** Copy of the content, if the content was replaced. */
  content: { sha256: string; size: number } | null;
  /** Absent in records from release 0.1 or earlier. */
  states?: FileState[];
  /** The ACL, if the resource declared one. */
  acl?: Acl;
};

/** Returns the states that the file is known to have had before the agent changed it. */
export function statesOf({ states, content, touched, uid, gid, mode }: RecordedFile): FileState[] {
  if (states !== undefined) return states;
  // An earlier release may have recorded the content after it had changed the file's owner.
  const isOfAnother = touched.includes('owner') && !touched.includes('ensure') && !touched.includes('symlink');
  return content === null || isOfAnother ? [] : [{ uid, gid, mode, ...content }];
}

export type HandBack =
  | { is: 'refused' }
  | {
      is: 'possible';
      target: Ownership;
      /** `copied`: the same content is written to a new file, because the previous owner may have the old one open. */
      content: { is: 'kept' | 'restored' } | { is: 'copied'; sha256: string; size: number };
      /**
       * Whether the file is restored without its recorded content, because another owner had that content, and without
       * a set-ID bit, because the bit belonged to other content.
       */
      left: { content: boolean; setId: boolean };
    };

/**
 * Decides how to restore a file to its recorded owner. An interim owner could have written any content to it. Another
 * owner gets the content only if that owner or the agent's user is known to have had it in this file before. Likewise,
 * a set-ID bit is restored only to the content, owner, and group that had it. Content that only the agent's user could
 * read is not exposed to others, unless the former owner had it in this file.
 * @param found null if the file is missing
 * @param created defaults for a new file; its owner is the agent's user
 */
export function decideHandBack(
  before: RecordedFile,
  found: (Ownership & { movable?: true; content: { sha256: string | null; size: number } | null }) | null,
  created: Ownership,
): HandBack {
  const requested = recordedOwnership(before, found);
  const uid = requested.uid ?? found?.uid ?? before.uid;
  const states = statesOf(before);
  const wasHis = (sha256: string): boolean =>
    states.some((state) => state.sha256 === sha256 && (state.uid === uid || state.uid === created.uid));
  const recorded = before.content;
  const comesBack = recorded !== null && wasHis(recorded.sha256);
  const present = found?.content ?? null;
  const isRestored = comesBack && present?.sha256 !== recorded.sha256;
  let content: Extract<HandBack, { is: 'possible' }>['content'] = { is: isRestored ? 'restored' : 'kept' };
  if (!isRestored) {
    if (found === null) return { is: 'refused' };
    if (found.uid !== uid && (found.uid !== created.uid || recorded !== null)) {
      if (present === null || present.sha256 === null || !wasHis(present.sha256)) return { is: 'refused' };
      content = { is: 'copied', sha256: present.sha256, size: present.size };
    }
  }
  const object: OwnedObject = { type: 'file', content: isRestored ? 'written' : 'kept' };
  const target = decideOwnership(requested, found, object, created);
  const sha256 = isRestored ? recorded.sha256 : (present?.sha256 ?? null);
  const known = states.filter((state) => state.sha256 === sha256);
  const isShown = (of: FileState | (Ownership & { movable?: true; size?: number })): boolean =>
    exposes(of, target, 'file');
  const standing = found === null ? [] : [{ ...found, ...(present === null ? {} : { size: present.size }) }];
  if (
    (isRestored ? known : standing).some(isShown) &&
    !known.some((state) => state.uid === target.uid || (state.uid === created.uid && !isShown(state)))
  )
    return { is: 'refused' };
  const isSame = found !== null && found.uid === target.uid && found.gid === target.gid;
  const gained = target.mode & setIdBits & ~(isSame ? found.mode : 0);
  const hadThem = known.some(
    (state) => state.uid === target.uid && state.gid === target.gid && (state.mode & gained) === gained,
  );
  const withheld = hadThem ? 0 : gained;
  // A former writer may have the file open or mapped. Writes through a mapping do not clear the set-ID bit.
  if (content.is === 'kept' && hadThem && gained !== 0 && sha256 !== null && present !== null)
    content = { is: 'copied', sha256, size: present.size };
  return {
    is: 'possible',
    target: { ...target, mode: target.mode & ~withheld },
    content,
    left: { content: recorded !== null && !comesBack, setId: withheld !== 0 },
  };
}
