import type { Agent, OffAgent } from '@muster/protocol/http';
import { type SyncState, syncStateOf } from '@muster/protocol/sync-state';

/** The data that determines the sync states of all agents. */
export interface FleetSync {
  /** Agents that are out of sync or outdated, or whose drift was accepted, by node id. */
  readonly off: ReadonlyMap<string, OffAgent>;
  /** Node ids of the approved agents without a successful apply. */
  readonly neverApplied: ReadonlySet<string>;
}

/** Returns an agent's sync state; null if it is not approved, or while the data is loading. */
export function agentSync({ node_id, status }: Agent, sync: FleetSync | null): SyncState | null {
  if (sync === null || status !== 'approved') return null;
  return syncStateOf(sync.off.get(node_id) ?? null, !sync.neverApplied.has(node_id));
}
