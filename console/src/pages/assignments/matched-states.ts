import type { Agent } from '@muster/protocol/http';
import type { SyncState } from '@muster/protocol/sync-state';
import { agentSync, type FleetSync } from '../reconcile/agent-sync.ts';

/** Sync states, the most urgent first. */
const order = [
  'out_of_sync',
  'outdated',
  'never_applied',
  'accepted',
  'in_sync',
] as const satisfies readonly SyncState[];

export interface MatchedAgent {
  readonly agent: Agent;
  /** Null while it is loading. */
  readonly state: SyncState | null;
}

/** Returns agents with their sync states, the most urgent first, and otherwise in the given order. */
export function withStates(agents: readonly Agent[], sync: FleetSync | null): MatchedAgent[] {
  const rankOf = ({ state }: MatchedAgent): number => (state === null ? 0 : order.indexOf(state));
  return agents
    .map((agent) => ({ agent, state: agentSync(agent, sync) }))
    .sort((one, other) => rankOf(one) - rankOf(other));
}

/** Counts agents by sync state, the most urgent first, without the states that no agent has. */
export function countedStates(
  matched: readonly MatchedAgent[],
): { readonly state: SyncState; readonly count: number }[] {
  return order
    .map((state) => ({ state, count: matched.filter((each) => each.state === state).length }))
    .filter(({ count }) => count > 0);
}
