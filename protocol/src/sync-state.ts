import type { OffAgent } from './http/reconcile.ts';

export type SyncState = 'in_sync' | 'outdated' | 'accepted' | 'out_of_sync' | 'never_applied';

/**
 * Returns an approved agent's state relative to its last successful apply. The apply is treated as a check, so the
 * agent is in sync until a check finds a difference.
 * @param off the agent's entry in `GET /reconcile?include_accepted=true&include_outdated=true`; null if it has none
 * @param isApplied whether an apply has succeeded
 */
export function syncStateOf(
  off: Pick<OffAgent, 'reasons' | 'drift' | 'outdated'> | null,
  isApplied: boolean,
): SyncState {
  if (off === null) return isApplied ? 'in_sync' : 'never_applied';
  if (off.reasons.length > 0) return 'out_of_sync';
  return off.drift.length > 0 ? 'accepted' : 'outdated';
}
