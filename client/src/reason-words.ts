import type { OffReason } from '@muster/protocol/http';

/** Short reasons why an agent differs from its desired state, for labels and summaries such as `3 drifted`. */
export const reasonWords: Readonly<Record<OffReason, string>> = {
  apply_failed: 'apply failed',
  drifted: 'drifted',
  drift_failed: 'check failed',
  unapplied: 'not applied',
  pending_removals: 'to remove',
};
