import { MusterError } from '@muster/protocol';
import type { Replica as ReplicaAnswer } from '@muster/protocol/http';
import { drainReplica, heldLeases, otherReplicas, undrainReplica } from '../../store/replicas.ts';
import { audited } from '../audit/audit.ts';
import type { Replica } from '../replicas/replicas.ts';
import type { Actor, Context } from '../shared/context.ts';
import { maxBeatAgeMs } from '../shared/health.ts';

/** Lists replicas, drains them, and takes draining back, for operators. */

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
      draining: row.draining !== 0,
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
  const lastReplica = () => new MusterError('last_replica', `no replica other than ${name} is ready`);
  const replicas = await listReplicas(parts);
  const found = replicaIn(replicas, (replica) => replica.name === name, name);
  if (found.draining) return found;
  const successors = replicas
    .filter((replica) => replica !== found && takesOver(replica))
    .map(({ incarnation }) => incarnation);
  if (successors.length === 0) throw lastReplica();
  await recordRequest(context, actor, 'replica.drain_requested', `requested to drain replica ${name}`, name);
  const { incarnation } = found;
  const { changes } = await context.db.alone(drainReplica, { incarnation, successors });
  if (changes > 0) return { ...found, draining: true };
  // Another request has drained this replica or its successors since they were listed, or they have been closed.
  const now = replicaIn(await listReplicas(parts), (replica) => replica.incarnation === incarnation, name);
  if (now.draining) return now;
  throw lastReplica();
}

/**
 * Takes back the draining of a replica: from its next heartbeat on, the replica is used again.
 * @throws MusterError replica_not_found, replica_stopping
 */
export async function undrainNamedReplica(parts: ReplicaListParts, actor: Actor, name: string): Promise<ReplicaAnswer> {
  const { context } = parts;
  const found = replicaIn(await listReplicas(parts), (replica) => replica.name === name, name);
  if (!found.draining) return found;
  await recordRequest(context, actor, 'replica.undrain_requested', `requested to undrain replica ${name}`, name);
  const { incarnation } = found;
  const { changes } = await context.db.alone(undrainReplica, { incarnation });
  if (changes > 0) return { ...found, draining: false };
  const now = replicaIn(await listReplicas(parts), (replica) => replica.incarnation === incarnation, name);
  if (!now.draining) return now;
  throw new MusterError('replica_stopping', `the replica ${name} is stopping`);
}

/** @throws MusterError replica_not_found */
function replicaIn(
  replicas: readonly ReplicaAnswer[],
  isSought: (replica: ReplicaAnswer) => boolean,
  name: string,
): ReplicaAnswer {
  const found = replicas.find(isSought);
  if (!found) throw new MusterError('replica_not_found', `there is no replica ${JSON.stringify(name.slice(0, 64))}`);
  return found;
}

/**
 * Records the event before the row of the replica is updated, because only this transaction requires the operator's
 * sign-in session. Rows of replicas are written outside of transactions.
 */
async function recordRequest(
  context: Context,
  actor: Actor,
  type: 'replica.drain_requested' | 'replica.undrain_requested',
  summary: string,
  name: string,
): Promise<void> {
  const event = { type, actor, summary, metadata: { replica: name } };
  await context.db.write({ name: 'replicas/drain', statements: [audited(context, event)] });
}

const takesOver = ({ ready, draining, heartbeat_age_secs }: ReplicaAnswer): boolean =>
  ready && !draining && heartbeat_age_secs * 1000 < maxBeatAgeMs;
