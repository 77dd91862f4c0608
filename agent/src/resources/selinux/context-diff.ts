import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '@muster/protocol';
import type { Context } from '../../host/selinux.ts';
import { type Difference, nothing, presenceDrift } from '../provider/provider.ts';
import { awaiting, goneMessage, type Unmet } from './records.ts';

/** Decides about a local record with a context, of a port or of files. */

export interface SeenRecord {
  unmet: Unmet;
  /** The local record; null if there is none. The policy itself may define the same port or pattern. */
  record: Context | null;
}

/** The local record before the agent's first change; null if there was none. */
export type RecordBefore = { record: Context | null };

const fields = ['type', 'user', 'range'] as const;

/** @param declared desired record; null for none. A field that is undefined is not managed */
export function recordChanges(declared: Partial<Context> | null, record: Context | null): FieldChange[] {
  if (declared === null) return record === null ? [] : [{ field: 'ensure', from: 'present', to: 'absent' }];
  const changes: FieldChange[] = record === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  for (const field of fields) {
    const to = declared[field];
    const from = record?.[field] ?? null;
    if (to !== undefined && to !== from) changes.push({ field, from, to });
  }
  return changes;
}

export function diffRecord(
  declared: Partial<Context> | null,
  { unmet, record }: SeenRecord,
  further: readonly FieldChange[] = [],
): Difference {
  const changes = [...recordChanges(declared, record), ...further];
  if (changes.length === 0) return nothing();
  if (declared === null && record !== null) return { ...presenceDrift(), ...awaiting(unmet) };
  return {
    action: record === null && declared !== null ? 'create' : 'update',
    changes,
    diff: null,
    ...awaiting(unmet),
  };
}

/** @param canRestore whether the machine has the programs to change the record */
export function diffRecordRemoval(
  before: RecordBefore,
  { record }: SeenRecord,
  canRestore: boolean,
  further: readonly FieldChange[] = [],
): Difference {
  const changes = isDeepStrictEqual(record, before.record) ? [] : recordChanges(before.record, record);
  if (changes.length + further.length === 0) return nothing('already in its original state');
  if (!canRestore) return nothing(goneMessage);
  const message = before.record === null ? undefined : 'restores the original state';
  return {
    action: 'remove',
    changes: [...changes, ...further],
    diff: null,
    ...(message === undefined ? {} : { message }),
  };
}
