import { MusterError } from '@muster/protocol';
import type { Replica as ReplicaAnswer } from '@muster/protocol/http';
import { drainReplica, heldLeases, otherReplicas, undrainReplica } from '../../store/replicas.ts';
import { audited } from '../audit/audit.ts';
import { maxBeatAgeMs } from '../replicas/peer-watch.ts';
import type { Replica } from '../replicas/replicas.ts';
import type { Actor, Context } from '../shared/context.ts';

/** Lists, drains, and undrains replicas for operators. */

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
      // A replica stores that it is not ready with its first heartbeat after it was drained.
      ready: row.ready === 1 && row.draining === 0,
      draining: row.draining !== 0,
      connected_agents: connectedTo(incarnation),
      leases: held.filter(({ holder }) => holder === incarnation).map(({ name }) => name),
      config_digest: row.config_digest,
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Drains or undrains a replica. From its next heartbeat on, a drained replica moves its agents and its work to the
 * other replicas, and an undrained replica is used again.
 * @throws MusterError replica_not_found; last_replica if no other replica is ready; replica_stopping if the replica to
 *   undrain is being stopped
 */
export async function requestDraining(
  parts: ReplicaListParts,
  actor: Actor,
  name: string,
  draining: boolean,
): Promise<ReplicaAnswer> {
  const { db } = parts.context;
  const refused = () =>
    draining
      ? new MusterError('last_replica', `no replica other than ${name} is ready`)
      : new MusterError('replica_stopping', `the replica ${name} is stopping`);
  const replicas = await listReplicas(parts);
  const found = replicaIn(replicas, (replica) => replica.name === name, name);
  if (found.draining === draining) return found;
  const { incarnation } = found;
  const successors = replicas
    .filter((replica) => replica !== found && takesOver(replica))
    .map((one) => one.incarnation);
  if (draining && successors.length === 0) throw refused();
  await recordRequest(parts.context, actor, draining ? 'drain' : 'undrain', name);
  const { changes } = draining
    ? await db.alone(drainReplica, { incarnation, successors })
    : await db.alone(undrainReplica, { incarnation });
  // An undrained replica is ready after its next heartbeat.
  if (changes > 0) return { ...found, draining, ready: false };
  // Since they were listed, another request has drained or undrained replicas, or replicas have stopped or been closed.
  const now = replicaIn(await listReplicas(parts), (replica) => replica.incarnation === incarnation, name);
  if (now.draining === draining) return now;
  throw refused();
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
async function recordRequest(context: Context, actor: Actor, verb: 'drain' | 'undrain', name: string): Promise<void> {
  const event = {
    type: verb === 'drain' ? 'replica.drain_requested' : 'replica.undrain_requested',
    actor,
    summary: `requested to ${verb} replica ${name}`,
    metadata: { replica: name },
  } as const;
  await context.db.write({ name: 'replicas/drain', statements: [audited(context, event)] });
}

const takesOver = ({ ready, draining, heartbeat_age_secs }: ReplicaAnswer): boolean =>
  ready && !draining && heartbeat_age_secs * 1000 < maxBeatAgeMs;
