import { keepLease, leaseHeld, releaseLease, takeLease } from '../../store/leases.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from './context.ts';

/** Leases for work that only one of several processes on the same database does. */

/** Statements that make a transaction fail if another process holds the lease. */
export type Fence = readonly Statement[];

export interface Lease {
  /**
   * Acquires the lease, or renews it when necessary. Returns null if another process holds it. Returns the same fence
   * until the lease is acquired again, so a caller can compare fences to find out whether another process may have held
   * the lease in between.
   */
  hold(): Promise<Fence | null>;
  /** Releases the lease, so that another process can acquire it immediately. */
  release(): Promise<void>;
}

/** Lifetime of a lease, in milliseconds. If the holder crashes, its work pauses for at most this time. */
const lifeMs = 10_000;
/** Maximum clock skew between processes on the same database, in milliseconds. */
const skewMs = 60_000;

/**
 * Creates a lease.
 * @param name identifies the work
 * @param holder identifies this process; the same after a restart, so that the process reacquires its own lease
 * without waiting
 */
export function createLease({ db, now }: Context, name: string, holder: string): Lease {
  let held: { token: number; until: number; fence: Fence } | null = null;
  const detail = `the lease ${name} has passed to another process`;

  const take = async () => {
    const until = now() + lifeMs;
    const take = statement(takeLease, { name, holder, now: now(), expires_ms: until, beyond_ms: until + skewMs });
    const [row] = (await db.write({ name: 'leases/take', statements: [take] })).of(take).rows;
    if (!row) return null;
    const { token } = row;
    const check = { expect: 'row', else: 'storage_unavailable', detail } as const;
    return { token, until, fence: [statement(leaseHeld, { name, holder, token }, check)] };
  };
  const keep = async ({ token, fence }: NonNullable<typeof held>) => {
    const until = now() + lifeMs;
    const keep = statement(keepLease, { name, holder, token, expires_ms: until });
    const renewed = (await db.write({ name: 'leases/keep', statements: [keep] })).of(keep).changes > 0;
    return renewed ? { token, until, fence } : null;
  };

  return {
    async hold() {
      // Renews after half of the lifetime. The other half leaves time for the work, and to detect that another process
      // has acquired the lease.
      const left = held === null ? 0 : held.until - now();
      // More than a full lifetime remains only if the clock was set back.
      if (held !== null && (left < lifeMs / 2 || left > lifeMs)) held = await keep(held);
      held ??= await take();
      return held?.fence ?? null;
    },
    async release() {
      if (held === null) return;
      const { token } = held;
      held = null;
      const release = statement(releaseLease, { name, holder, token });
      await db.write({ name: 'leases/release', statements: [release] });
    },
  };
}
