import type { Log } from '../../../../lib/src/log.ts';
import type { Database } from '../../store/database.ts';
import {
  closeReplica,
  insertReplica,
  otherReplicas,
  raiseBeat,
  removeOtherReplicas,
  removeReplica,
} from '../../store/replicas.ts';
import { statement } from '../../store/transaction.ts';
import { PeerWatch } from './peer-watch.ts';
import type { ServerClock } from './server-clock.ts';

/** This process's membership in the group of processes that share the database. */

export interface ReplicaParts {
  readonly db: Database;
  readonly clock: ServerClock;
  readonly log: Log;
  /** An id that no other process ever uses. */
  readonly incarnation: string;
  /** Name of this replica, for operators. */
  readonly name: string;
  readonly version: string;
}

export interface Replica {
  /**
   * Increments this process's heartbeat counter, measures the server's time, and closes the processes that are no
   * longer alive.
   * @throws ReplicaClosed if another process has closed this one
   */
  beat(): Promise<void>;
  /** Leaves the group, so that other processes take over immediately. */
  leave(): Promise<void>;
}

/** Another process has taken over the work of this process, which must exit. */
export class ReplicaClosed extends Error {
  constructor() {
    super('another process has taken over the work of this one, because this one did not respond for 10 seconds');
    this.name = 'ReplicaClosed';
  }
}

/** Joins the group of processes on the database. */
export async function joinReplicas({ db, clock, log, incarnation, name, version }: ReplicaParts): Promise<Replica> {
  const watch = new PeerWatch<{ incarnation: string; name: string; beat: number }>();
  const measure = (rows: readonly { time: number }[], askedAt: number) => {
    for (const { time } of rows) clock.measured(time, askedAt);
    return rows.length > 0;
  };
  const started_at = Math.floor(clock.now() / 1000);
  const askedAt = clock.monotonic();
  measure((await db.alone(insertReplica, { incarnation, name, version, started_at })).rows, askedAt);
  return {
    async beat() {
      const at = clock.monotonic();
      if (!measure((await db.alone(raiseBeat, { incarnation })).rows, at)) throw new ReplicaClosed();
      const readAt = clock.monotonic();
      for (const peer of watch.read(await db.all(otherReplicas, { incarnation }), readAt)) {
        const { changes } = await db.alone(closeReplica, { incarnation: peer.incarnation, beat: peer.beat });
        if (changes > 0) log.warn({ replica: peer.name }, 'closed a replica that did not respond for 10 seconds');
      }
    },
    async leave() {
      await db.alone(removeReplica, { incarnation });
    },
  };
}

/** Closes all other processes. Call this only while no other process can use the database. */
export async function closeOtherReplicas(db: Database, incarnation: string): Promise<void> {
  const statements = [statement(removeOtherReplicas, { incarnation })];
  await db.write({ name: 'replicas/close others', statements });
}
