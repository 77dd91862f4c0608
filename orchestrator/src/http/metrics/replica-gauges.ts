import type { PeerTrouble } from '../../domain/replicas/peer-troubles.ts';
import type { ReplicaState } from '../../domain/replicas/replicas.ts';
import { gauge, type Registers, total } from './registered.ts';

/** Metrics of an orchestrator that shares its database with others. */

export interface ReplicaLevels {
  /** The states of all replicas that are known to be alive. */
  readonly states: readonly ReplicaState[];
  readonly troubles: readonly PeerTrouble['trouble'][];
  readonly isDraining: boolean;
  readonly heartbeatAgeSecs: number;
  /** Number of other replicas that this one has closed. */
  readonly closed: number;
  readonly leases: { readonly held: number; readonly lost: number };
}

const states: readonly ReplicaState[] = ['ready', 'not_ready', 'draining'];
const troubles: readonly PeerTrouble['trouble'][] = ['missing', 'version', 'configuration'];

const countIn = <T>(list: readonly T[], value: T): number => list.filter((one) => one === value).length;

/** @returns a function that sets the gauges for replicas */
export function replicaGauges(registers: Registers): (levels: ReplicaLevels) => void {
  const replicas = gauge(registers, 'muster_replicas', 'Replicas that are alive, by state.', ['state']);
  const found = gauge(
    registers,
    'muster_replica_troubles',
    'Replicas that ended without being stopped, or that differ from this one.',
    ['trouble'],
  );
  const draining = gauge(registers, 'muster_replica_draining', '1 while this replica is drained or stopping.');
  const heartbeat = gauge(
    registers,
    'muster_replica_heartbeat_age_seconds',
    'Seconds since the last heartbeat of this replica. After 10, other replicas close it.',
  );
  const closed = total(
    registers,
    'muster_replicas_closed_total',
    'Number of other replicas that this one closed because they sent no heartbeats.',
  );
  const held = gauge(registers, 'muster_leases_held', 'Leases that this replica holds.');
  const lost = total(
    registers,
    'muster_leases_lost_total',
    'Number of times that another replica took a lease before this one released it.',
  );
  return (levels) => {
    for (const state of states) replicas.set({ state }, countIn(levels.states, state));
    for (const trouble of troubles) found.set({ trouble }, countIn(levels.troubles, trouble));
    draining.set(levels.isDraining ? 1 : 0);
    heartbeat.set(levels.heartbeatAgeSecs);
    closed.set(levels.closed);
    held.set(levels.leases.held);
    lost.set(levels.leases.lost);
  };
}
