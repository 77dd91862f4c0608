import type { DriftRecord } from '@muster/protocol/http';

/**
 * Since when an agent deviates: the first check of the unbroken line of those that found drift. Pure.
 * @param newestFirst checks of this agent, of which the record may be one
 * @returns Unix seconds, and whether it may be longer than these checks tell
 */
export function driftedSince(
  record: Pick<DriftRecord, 'drift_id' | 'checked_at' | 'snapshot_operation_id'>,
  newestFirst: readonly Pick<DriftRecord, 'drift_id' | 'checked_at' | 'status' | 'snapshot_operation_id'>[],
): { readonly at: number; readonly atLeast: boolean } {
  let at = record.checked_at;
  const from = newestFirst.findIndex(({ drift_id }) => drift_id === record.drift_id);
  if (from === -1) return { at, atLeast: true };
  for (const { status, checked_at, snapshot_operation_id } of newestFirst.slice(from + 1)) {
    // A check that failed says nothing; another apply began anew.
    if (status === 'in_sync' || snapshot_operation_id !== record.snapshot_operation_id) return { at, atLeast: false };
    if (status === 'drifted') at = checked_at;
  }
  return { at, atLeast: newestFirst.length >= mostChecks };
}

/** So many checks are asked for. */
const mostChecks = 50;
