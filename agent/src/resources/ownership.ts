import type { FieldChange } from '@muster/protocol';
import type { Accounts } from '../host/accounts.ts';
import type { Ownership } from '../host/inspect.ts';
import type { Difference } from './provider.ts';

/** Owner, group and permissions, as files and directories both have them. */

export interface OwnershipFields {
  owner?: string | null;
  group?: string | null;
  mode?: string | null;
}

/** What was looked up for the decision: the numbers wanted, the names of those found. */
export interface SeenOwnership {
  /** Null: declared but unknown here. Absent: not declared. */
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
const parseMode = (mode: string): number => Number.parseInt(mode, 8);

/**
 * @param found null: it is to be created, everything declared changes
 * @returns what changes, and what is declared but not there
 */
export function diffOwnership(
  fields: OwnershipFields,
  found: Ownership | null,
  seen: SeenOwnership,
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
  if (fields.mode != null) {
    const wanted = parseMode(fields.mode);
    if (found === null || found.mode !== wanted)
      changes.push({ field: 'mode', from: found === null ? null : formatMode(found.mode), to: formatMode(wanted) });
  }
  return { changes, awaits };
}

/** The ownership to end up with: what is declared, else what is there, else the default. */
export function targetOwnership(
  fields: OwnershipFields,
  found: Ownership | null,
  seen: SeenOwnership,
  created: Ownership,
): Ownership {
  const base = found ?? created;
  return {
    uid: seen.wantedUid ?? base.uid,
    gid: seen.wantedGid ?? base.gid,
    mode: fields.mode == null ? base.mode : parseMode(fields.mode),
  };
}

/** Who owns what the agent creates without a declared owner. */
export const createdOwner = (): { uid: number; gid: number } => ({
  uid: process.geteuid?.() ?? 0,
  gid: process.getegid?.() ?? 0,
});

const ownershipFields = ['owner', 'group', 'mode'] as const;

/** What is kept of something that was there: its owner and permissions, and which of its fields must come back. */
export interface OwnershipBefore extends Ownership {
  ownerName: string;
  groupName: string;
  touched: string[];
}

/**
 * Records what is there now of the fields that are about to change for the first time.
 * @param changing names of the fields that change
 * @param goes whether the thing itself goes or is replaced: all of its owner and permissions go with it
 */
export function touchOwnership<T extends OwnershipBefore>(
  before: T,
  changing: ReadonlySet<string>,
  goes: boolean,
  found: Ownership,
  seen: SeenOwnership,
): T {
  const record = { ...before };
  const first = (field: string): boolean => (goes || changing.has(field)) && !before.touched.includes(field);
  if (first('owner')) Object.assign(record, { uid: found.uid, ownerName: seen.ownerName ?? String(found.uid) });
  if (first('group')) Object.assign(record, { gid: found.gid, groupName: seen.groupName ?? String(found.gid) });
  if (first('mode')) record.mode = found.mode;
  record.touched = [...new Set([...before.touched, ...changing, ...(goes ? ownershipFields : [])])].sort();
  return record;
}

/** It is gone, or something else took its place: what is put there anew has none of its owner and permissions. */
export const replacedWhole = <T extends OwnershipBefore>(before: T): T => ({
  ...before,
  touched: [...new Set([...before.touched, ...ownershipFields])].sort(),
});
