import { defineQuery } from './query.ts';

/**
 * Processes that share a PostgreSQL database. Each process is an incarnation: an ID that no other process ever has. A
 * process without a row has been closed, so a row never returns.
 *
 * No transaction may read this table. Its few rows change every two seconds, and PostgreSQL would see a conflict with
 * each of these changes. Transactions check fencing tokens instead.
 */

export const insertReplica = defineQuery(
  'replicas/insert',
  (db, p: { incarnation: string; name: string; version: string; started_at: number }, d) =>
    db
      .insertInto('replicas')
      .values({ incarnation: p.incarnation, name: p.name, version: p.version, started_at: p.started_at, beat: 0 })
      .returning(d.serverTime.as('time')),
);

/**
 * Signals to other processes that this process is alive. Returns the server's time, and whether the process should
 * drain; no row if it has been closed.
 */
export const raiseBeat = defineQuery(
  'replicas/beat',
  (db, p: { incarnation: string; ready: 0 | 1; config_digest: string }, d) =>
    db
      .updateTable('replicas')
      .set((e) => ({ beat: e('beat', '+', e.lit(1)), ready: p.ready, config_digest: p.config_digest }))
      .where('incarnation', '=', p.incarnation)
      .returning([d.serverTime.as('time'), 'draining']),
);

export const otherReplicas = defineQuery('replicas/others', (db, p: { incarnation: string }) =>
  db
    .selectFrom('replicas')
    // Does not select all columns, because a newer release may add columns after this statement has been prepared.
    .select(['incarnation', 'name', 'version', 'started_at', 'beat', 'ready', 'draining', 'config_digest'])
    .where('incarnation', '<>', p.incarnation),
);

/** The leases that live processes hold. */
export const heldLeases = defineQuery('replicas/leases', (db) =>
  db
    .selectFrom('leases')
    .innerJoin('replicas', 'replicas.incarnation', 'leases.holder')
    .select(['leases.name', 'leases.holder'])
    .orderBy('leases.name'),
);

export const isLiveReplica = defineQuery('replicas/is live', (db, p: { incarnation: string }) =>
  db.selectFrom('replicas').select('incarnation').where('incarnation', '=', p.incarnation),
);

/**
 * Removes the previous processes of a replica. The lock for the replica's name proves that these processes have ended.
 */
export const removeFormerReplicas = defineQuery(
  'replicas/remove former',
  (db, p: { name: string; incarnation: string }) =>
    db.deleteFrom('replicas').where('name', '=', p.name).where('incarnation', '<>', p.incarnation),
);

/**
 * Marks a process for draining, unless none of `successors` is still ready. Locks all rows first, so that of two
 * concurrent statements, the second one reads what the first one wrote. Fails instead of waiting if a row is locked: while
 * it waited, it would hold the rows of the other processes, whose heartbeats would wait for it.
 */
export const drainReplica = defineQuery(
  'replicas/drain',
  (db, p: { incarnation: string; successors: readonly string[] }, d) =>
    db
      .with('locked', (cte) => {
        const rows = cte.selectFrom('replicas').select(['incarnation', 'ready', 'draining']);
        return d.kind === 'postgres' ? rows.forUpdate().noWait() : rows;
      })
      .updateTable('replicas')
      .set({ draining: 1 })
      .where('incarnation', '=', p.incarnation)
      .where('draining', '=', 0)
      .where((e) =>
        e(
          // Counts, because a search for one row would lock only the rows that it reads.
          e
            .selectFrom('locked')
            .select((count) => count.fn.countAll<number>().as('count'))
            .where(d.isIn('locked.incarnation', p.successors))
            .where('locked.draining', '=', 0)
            .where('locked.ready', '=', 1),
          '>',
          e.lit(0),
        ),
      ),
);

/**
 * Ends the draining of a process, which is ready only after its next heartbeat. Changes no row if the process is
 * stopping.
 */
export const undrainReplica = defineQuery('replicas/undrain', (db, p: { incarnation: string }) =>
  db
    .updateTable('replicas')
    .set({ draining: 0, ready: 0 })
    .where('incarnation', '=', p.incarnation)
    .where('draining', '=', 1),
);

/** Marks a process as stopping. */
export const stopReplica = defineQuery('replicas/stop', (db, p: { incarnation: string }) =>
  db.updateTable('replicas').set({ draining: 2 }).where('incarnation', '=', p.incarnation),
);

/** Closes a process, unless it has sent a heartbeat in the meantime. */
export const closeReplica = defineQuery('replicas/close', (db, p: { incarnation: string; beat: number }) =>
  db.deleteFrom('replicas').where('incarnation', '=', p.incarnation).where('beat', '=', p.beat),
);

export const removeReplica = defineQuery('replicas/remove', (db, p: { incarnation: string }) =>
  db.deleteFrom('replicas').where('incarnation', '=', p.incarnation),
);

export const removeOtherReplicas = defineQuery('replicas/remove others', (db, p: { incarnation: string }) =>
  db.deleteFrom('replicas').where('incarnation', '<>', p.incarnation),
);

/** The fingerprint of a key that all replicas must have. */
export interface StoredKey {
  readonly kind: 'identity' | 'api' | 'secrets';
  readonly fingerprint: string;
}

/** Stores the fingerprint of a key, unless the replicas already have a key of this kind. */
export const claimReplicaKey = defineQuery(
  'replica keys/claim',
  (db, p: { kind: 'identity' | 'api' | 'secrets'; fingerprint: string }) =>
    db
      .insertInto('replica_keys')
      .values({ kind: p.kind, fingerprint: p.fingerprint })
      .onConflict((conflict) => conflict.column('kind').doNothing()),
);

export const replicaKeys = defineQuery('replica keys/all', (db) => db.selectFrom('replica_keys').selectAll());

/** Deletes the fingerprints, so that the next replica determines the keys that all replicas must have. */
export const deleteReplicaKeys = defineQuery('replica keys/delete', (db) => db.deleteFrom('replica_keys'));
