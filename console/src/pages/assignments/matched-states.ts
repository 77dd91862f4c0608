import type { Agent } from '@muster/protocol/http';
import type { SyncState } from '@muster/protocol/sync-state';
import { findingsOf } from '../../../../client/src/reason-words.ts';
import type { StateTone } from '../../parts/badge.tsx';
import { agentSync, type FleetSync } from '../reconcile/agent-sync.ts';
import { findingTones, syncTones } from '../reconcile/sync-tones.ts';

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
  readonly tone: StateTone;
}

/** Returns the tone of an agent's state, which is that of a failure if the agent has one. */
function toneOf({ node_id }: Agent, state: SyncState | null, sync: FleetSync | null): StateTone {
  const off = sync?.off.get(node_id);
  if (off !== undefined && findingsOf(off).some((finding) => findingTones[finding] === 'bad')) return 'bad';
  return state === null ? 'neutral' : syncTones[state];
}

const isFailed = ({ tone }: MatchedAgent): boolean => tone === 'bad';

/** Returns agents with their sync states, the most urgent first, and otherwise in the given order. */
export function withStates(agents: readonly Agent[], sync: FleetSync | null): MatchedAgent[] {
  const byState = Map.groupBy(agents, (agent) => agentSync(agent, sync));
  return [null, ...order].flatMap((state) => {
    const listed = (byState.get(state) ?? []).map((agent) => ({ agent, state, tone: toneOf(agent, state, sync) }));
    const [failed, others] = [listed.filter(isFailed), listed.filter((entry) => !isFailed(entry))];
    return [...failed, ...others];
  });
}

/**
 * Counts agents by sync state, the most urgent first, without the states that no agent has. The tone of a state is that
 * of its most urgent agent.
 */
export function countedStates(
  agents: readonly Agent[],
  sync: FleetSync | null,
): { readonly state: SyncState; readonly count: number; readonly tone: StateTone }[] {
  const byState = Map.groupBy(withStates(agents, sync), ({ state }) => state);
  return order.flatMap((state) => {
    const listed = byState.get(state) ?? [];
    return listed.slice(0, 1).map(({ tone }) => ({ state, count: listed.length, tone }));
  });
}
