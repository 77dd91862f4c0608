import type { OffReason } from './http/reconcile.ts';

export type SyncState = 'in_sync' | 'accepted' | 'out_of_sync' | 'never_applied';

/**
 * Returns an approved agent's state relative to its last successful apply. The apply is treated as a check, so the
 * agent is in sync until a check finds a difference.
 * @param off the agent's entry in `GET /reconcile?include_accepted=true`; null if it has none
 * @param isApplied whether an apply has succeeded
 */
export const syncStateOf = (off: { readonly reasons: readonly OffReason[] } | null, isApplied: boolean): SyncState =>
  off === null ? (isApplied ? 'in_sync' : 'never_applied') : off.reasons.length > 0 ? 'out_of_sync' : 'accepted';
