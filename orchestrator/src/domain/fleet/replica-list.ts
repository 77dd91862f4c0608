import type { Replica as ReplicaAnswer } from '@muster/protocol/http';
import { heldLeases, otherReplicas } from '../../store/replicas.ts';
import type { Replica } from '../replicas/replicas.ts';
import type { Context } from '../shared/context.ts';

/** The replicas, for operators. */

export interface ReplicaListParts {
  readonly context: Pick<Context, 'db'>;
  readonly replica: Pick<Replica, 'incarnation' | 'heartbeatAge'>;
  /** Returns the number of agents that are connected to a process. */
  readonly connectedTo: (incarnation: string) => number;
}

/** Lists the replicas by name. */
export async function listReplicas(parts: ReplicaListParts): Promise<ReplicaAnswer[]> {
  const { context, replica, connectedTo } = parts;
  const [rows, held] = await Promise.all([
    context.db.all(otherReplicas, { incarnation: '' }),
    context.db.all(heldLeases, {}),
  ]);
  return rows
    .map(({ incarnation, ...row }) => ({
      name: row.name,
      incarnation,
      this_replica: incarnation === replica.incarnation,
      version: row.version,
      started_at: row.started_at,
      heartbeat_age_secs: Math.round(replica.heartbeatAge(incarnation) / 100) / 10,
      ready: row.ready === 1,
      draining: row.draining === 1,
      connected_agents: connectedTo(incarnation),
      leases: held.filter(({ holder }) => holder === incarnation).map(({ name }) => name),
      config_digest: row.config_digest,
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
