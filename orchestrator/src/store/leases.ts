import { defineQuery } from './query.ts';

/** Leases for work that only one process may do at a time. The holder is the incarnation of a process. */

/** Returns leases with their fencing tokens, and whether each holder may still be alive. */
export const leaseStates = defineQuery('leases/states', (db, p: { names: readonly string[] }, d) =>
  db
    .selectFrom('leases')
    .leftJoin('replicas', 'replicas.incarnation', 'leases.holder')
    .select(['leases.name', 'leases.holder', 'leases.token', 'replicas.incarnation as alive'])
    .where(d.isIn('leases.name', p.names)),
);

/**
 * Takes a lease whose fencing token is `former`; 0 for a new lease. Returns a row with the new, larger token, or no row
 * if another process has taken the lease since `former` was read.
 */
export const takeLease = defineQuery('leases/take', (db, p: { name: string; holder: string; former: number }) =>
  db
    .insertInto('leases')
    .values({ name: p.name, holder: p.holder, token: 1 })
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet({
          holder: (e) => e.ref('excluded.holder'),
          token: (e) => e('leases.token', '+', e.lit(1)),
        })
        .where('leases.token', '=', p.former),
    )
    .returning('token'),
);

export const releaseLease = defineQuery('leases/release', (db, p: { name: string; holder: string; token: number }) =>
  db
    .updateTable('leases')
    .set({ holder: '' })
    .where('name', '=', p.name)
    .where('holder', '=', p.holder)
    .where('token', '=', p.token),
);

/** For preconditions: returns a row unless the lease has been taken again or released. */
export const leaseHeld = defineQuery('leases/held', (db, p: { name: string; holder: string; token: number }) =>
  db
    .selectFrom('leases')
    .select('token')
    .where('name', '=', p.name)
    .where('holder', '=', p.holder)
    .where('token', '=', p.token),
);
