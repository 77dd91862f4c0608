import { defineQuery } from './query.ts';

/** Leases for work that only one process may do at a time. Times are Unix milliseconds. */

/**
 * Takes a lease that is free, expired, or already held by this holder. Also takes a lease that expires after
 * `beyond_ms`, because only a wrong clock can have set such an expiry. Returns a row with the fencing token, which
 * increases each time the lease is taken, or no row if another process holds the lease.
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

/** Renews the lease. Changes nothing if another process has taken it. */
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

export const releaseLease = defineQuery('leases/release', (db, p: { name: string; holder: string; token: number }) =>
  db
    .updateTable('leases')
    .set({ expires_ms: 0 })
    .where('name', '=', p.name)
    .where('holder', '=', p.holder)
    .where('token', '=', p.token),
);

/** For preconditions: returns a row unless the lease was taken again. */
export const leaseHeld = defineQuery('leases/held', (db, p: { name: string; holder: string; token: number }) =>
  db
    .selectFrom('leases')
    .select('token')
    .where('name', '=', p.name)
    .where('holder', '=', p.holder)
    .where('token', '=', p.token),
);
