import { type Agent, type OffReason, offReasons } from '@muster/protocol/http';
import type { SyncState } from '@muster/protocol/sync-state';
import { agentSync, type FleetSync } from '../reconcile/agent-sync.ts';

/** An agent's sync state, or the worst reason why the agent is out of sync. */
export type Finding = OffReason | SyncState;

/** Findings, the most urgent first. */
const order: readonly Finding[] = [...offReasons, 'out_of_sync', 'outdated', 'never_applied', 'accepted', 'in_sync'];

export interface MatchedAgent {
  readonly agent: Agent;
  /** Null while it is loading. */
  readonly finding: Finding | null;
}

function findingOf(agent: Agent, sync: FleetSync | null): Finding | null {
  const state = agentSync(agent, sync);
  return state === 'out_of_sync' ? (sync?.off.get(agent.node_id)?.reasons[0] ?? state) : state;
}

/** Returns agents with their findings, the most urgent first, and otherwise in the given order. */
export function withFindings(agents: readonly Agent[], sync: FleetSync | null): MatchedAgent[] {
  const byFinding = Map.groupBy(agents, (agent) => findingOf(agent, sync));
  return [null, ...order].flatMap((finding) => (byFinding.get(finding) ?? []).map((agent) => ({ agent, finding })));
}

export interface FindingCount {
  readonly finding: Finding;
  readonly count: number;
}

/** Counts agents by finding, the most urgent first, without the findings that no agent has. */
export function countedFindings(agents: readonly Agent[], sync: FleetSync | null): readonly FindingCount[] {
  const byFinding = Map.groupBy(agents, (agent) => findingOf(agent, sync));
  return order.flatMap((finding) => {
    const count = byFinding.get(finding)?.length ?? 0;
    return count === 0 ? [] : [{ finding, count }];
  });
}

/** Returns the sort key of an assignment: the more urgent its worst finding, the lower; then by its number of agents. */
export function urgencyOf([worst]: readonly FindingCount[]): number | null {
  return worst === undefined ? null : order.indexOf(worst.finding) * 1e9 - worst.count;
}
