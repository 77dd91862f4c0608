import { MusterError } from '@muster/protocol';
import type { Replica as ReplicaAnswer } from '@muster/protocol/http';
import { drainReplica, heldLeases, otherReplicas } from '../../store/replicas.ts';
import { audited } from '../audit/audit.ts';
import type { Replica } from '../replicas/replicas.ts';
import type { Actor, Context } from '../shared/context.ts';
import { maxBeatAgeMs } from '../shared/health.ts';

/** Lists and drains replicas for operators. */

export interface ReplicaListParts {
  readonly context: Context;
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

/**
 * Drains a replica: from its next heartbeat on, the replica moves its agents and its work to the other replicas.
 * @throws MusterError replica_not_found, last_replica
 */
export async function drainNamedReplica(parts: ReplicaListParts, actor: Actor, name: string): Promise<ReplicaAnswer> {
  const { context } = parts;
  const replicas = await listReplicas(parts);
  const found = replicas.find((replica) => replica.name === name);
  const notFound = () =>
    new MusterError('replica_not_found', `there is no replica ${JSON.stringify(name.slice(0, 64))}`);
  if (!found) throw notFound();
  if (found.draining) return found;
  if (!replicas.some((replica) => replica !== found && takesOver(replica)))
    throw new MusterError('last_replica', `no replica other than ${name} is ready`);
  const event = {
    type: 'replica.drain_requested',
    actor,
    summary: `replica ${name} drained`,
    metadata: { replica: name },
  } as const;
  // Records the event before the row is updated, because only this transaction requires the operator's sign-in session.
  // Rows of replicas are written outside of transactions.
  await context.db.write({ name: 'replicas/drain', statements: [audited(context, event)] });
  const { changes } = await context.db.alone(drainReplica, { incarnation: found.incarnation });
  // The replica may have been closed since it was listed.
  if (changes === 0) throw notFound();
  return { ...found, draining: true };
}

const takesOver = ({ ready, draining, heartbeat_age_secs }: ReplicaAnswer): boolean =>
  ready && !draining && heartbeat_age_secs * 1000 < maxBeatAgeMs;
