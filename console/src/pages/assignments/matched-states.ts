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
  const byState = Map.groupBy(agents, (agent) => agentSync(agent, sync));
  return [null, ...order].flatMap((state) => (byState.get(state) ?? []).map((agent) => ({ agent, state })));
}

/** Counts agents by sync state, the most urgent first, without the states that no agent has. */
export function countedStates(
  agents: readonly Agent[],
  sync: FleetSync | null,
): { readonly state: SyncState; readonly count: number }[] {
  const byState = Map.groupBy(agents, (agent) => agentSync(agent, sync));
  return order.flatMap((state) => {
    const count = byState.get(state)?.length ?? 0;
    return count === 0 ? [] : [{ state, count }];
  });
}
