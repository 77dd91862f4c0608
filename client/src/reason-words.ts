import type { OffReason } from '@muster/protocol/http';

/** Why an agent differs from its desired state, in short: for labels, and after a number of agents. */
export const reasonWords: Readonly<Record<OffReason, string>> = {
  apply_failed: 'apply failed',
  drifted: 'drifted',
  drift_failed: 'check failed',
  unapplied: 'not applied',
  pending_removals: 'to remove',
};
