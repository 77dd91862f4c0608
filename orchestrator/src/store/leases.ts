import { defineQuery } from './query.ts';

/** Leases: work that one process does at a time. Times are Unix milliseconds. */

/**
 * Takes a lease that nobody holds, that has run out, that says it lasts until after `beyond_ms`, as one does that was
 * taken by a wrong clock, or that the same holder had before. Gives a row with the fencing
 * token, which grows with every taking; none when it is another's.
 */
export const takeLease = defineQuery(
  'leases/take',
  (db, p: { name: string; holder: string; now: number; expires_ms: number; beyond_ms: number }) =>
    db
      .insertInto('leases')
      .values({ name: p.name, holder: p.holder, token: 1, expires_ms: p.expires_ms })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet({
            holder: (e) => e.ref('excluded.holder'),
            token: (e) => e('leases.token', '+', e.lit(1)),
            expires_ms: (e) => e.ref('excluded.expires_ms'),
          })
          .where((e) =>
            e.or([
              e('leases.expires_ms', '<=', p.now),
              e('leases.expires_ms', '>', p.beyond_ms),
              e('leases.holder', '=', e.ref('excluded.holder')),
            ]),
          ),
      )
      .returning('token'),
);

/** Changes nothing when the lease has passed to another. */
export const keepLease = defineQuery(
  'leases/keep',
  (db, p: { name: string; holder: string; token: number; expires_ms: number }) =>
    db
      .updateTable('leases')
      .set({ expires_ms: p.expires_ms })
      .where('name', '=', p.name)
      .where('holder', '=', p.holder)
      .where('token', '=', p.token),
);

/** Lets others have the lease at once. */
export const releaseLease = defineQuery('leases/release', (db, p: { name: string; holder: string; token: number }) =>
  db
    .updateTable('leases')
    .set({ expires_ms: 0 })
    .where('name', '=', p.name)
    .where('holder', '=', p.holder)
    .where('token', '=', p.token),
);

/** For preconditions: a row while this taking of the lease is the last. */
export const leaseHeld = defineQuery('leases/held', (db, p: { name: string; holder: string; token: number }) =>
  db
    .selectFrom('leases')
    .select('token')
    .where('name', '=', p.name)
    .where('holder', '=', p.holder)
    .where('token', '=', p.token),
);
