import type { SyncState } from '@muster/protocol/sync-state';
import { type OffFinding, reasonWords } from '../../../../client/src/reason-words.ts';
import type { StateTone } from '../../parts/badge.tsx';

/** Tones of sync states and of their reasons, for all pages. */

export const syncTones: Readonly<Record<SyncState, StateTone>> = {
  in_sync: 'good',
  out_of_sync: 'warn',
  outdated: 'mild',
  accepted: 'neutral',
  never_applied: 'faint',
};

/** Failures are `bad`, and differences that an apply repairs are `warn`. */
export const findingTones: Readonly<Record<OffFinding | SyncState, StateTone>> = {
  ...syncTones,
  apply_failed: 'bad',
  drifted: 'warn',
  drift_failed: 'bad',
  unapplied: 'warn',
  pending_removals: 'warn',
};

export const syncWords: Readonly<Record<SyncState, string>> = {
  in_sync: 'in sync',
  out_of_sync: 'out of sync',
  outdated: 'outdated',
  accepted: 'accepted',
  never_applied: 'never applied',
};

export const findingWords: Readonly<Record<OffFinding | SyncState, string>> = { ...syncWords, ...reasonWords };
