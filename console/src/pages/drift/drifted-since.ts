import type { DriftRecord } from '@muster/protocol/http';

/**
 * Returns when an agent started to drift: the time of the first of the consecutive checks that found drift.
 * @param newestFirst checks of this agent; may include the record
 * @returns Unix seconds, and whether the drift may have started before the earliest of these checks
 */
export function driftedSince(
  record: Pick<DriftRecord, 'drift_id' | 'checked_at' | 'snapshot_operation_id'>,
  newestFirst: readonly Pick<DriftRecord, 'drift_id' | 'checked_at' | 'status' | 'snapshot_operation_id'>[],
): { readonly at: number; readonly atLeast: boolean } {
  let at = record.checked_at;
  const from = newestFirst.findIndex(({ drift_id }) => drift_id === record.drift_id);
  if (from === -1) return { at, atLeast: true };
  for (const { status, checked_at, snapshot_operation_id } of newestFirst.slice(from + 1)) {
    // A failed check is inconclusive. A different snapshot means that an apply ran between the checks.
    if (status === 'in_sync' || snapshot_operation_id !== record.snapshot_operation_id) return { at, atLeast: false };
    if (status === 'drifted') at = checked_at;
  }
  return { at, atLeast: newestFirst.length >= maxChecks };
}

/** Page size of the query in api/drift.ts. If a page is full, older checks may exist. */
const maxChecks = 50;
