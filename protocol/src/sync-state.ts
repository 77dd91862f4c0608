import type { OffAgent } from './http/reconcile.ts';

export type SyncState = 'in_sync' | 'outdated' | 'accepted' | 'out_of_sync' | 'never_applied';

/** Differences between an approved agent and its last successful apply. */
export interface SyncFacts {
  /** Reasons why the agent is not in its desired state. */
  readonly reasons: OffAgent['reasons'];
  /** Whether an applied module has a newer revision. */
  readonly isOutdated: boolean;
  /** Whether the agent has drifted, including accepted drift. */
  readonly hasDrifted: boolean;
  /** Whether an apply has succeeded. */
  readonly isApplied: boolean;
}

/**
 * Decides an approved agent's state. The API, the CLI, and the console all use this decision, so that counts and lists
 * agree. The worst state takes precedence: `outdated` comes before `accepted`, because only an outdated agent needs an
 * apply. The last successful apply is treated as a check, so the agent is in sync until a check finds a difference.
 */
export function decideSyncState({ reasons, isOutdated, hasDrifted, isApplied }: SyncFacts): SyncState {
  if (reasons.length > 0) return 'out_of_sync';
  if (isOutdated) return 'outdated';
  if (hasDrifted) return 'accepted';
  return isApplied ? 'in_sync' : 'never_applied';
}

/**
 * Returns the state of an approved agent by its entry in the list of agents that need attention.
 * @param off the agent's entry in `GET /reconcile?include_accepted=true&include_outdated=true`; null if it has none
 * @param isApplied whether an apply has succeeded
 */
export const syncStateOf = (
  off: Pick<OffAgent, 'reasons' | 'drift' | 'outdated'> | null,
  isApplied: boolean,
): SyncState =>
  decideSyncState({
    reasons: off?.reasons ?? [],
    isOutdated: off?.outdated !== undefined,
    hasDrifted: (off?.drift.length ?? 0) > 0,
    isApplied,
  });
