import { leaseHeld, leaseState, releaseLease, takeLease } from '../../store/leases.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from './context.ts';

/**
 * Leases for work that only one of several processes on the same database may do. A lease lasts as long as its holder's
 * incarnation: another process can acquire it after it is released, or after the holder is closed.
 */

/** Statements that make a transaction fail if another process holds the lease. */
export type Fence = readonly Statement[];

export interface Lease {
  /**
   * Acquires the lease. Returns null if another process holds it, or if this process has acquired it through another
   * `Lease` object. Returns the same fence until the lease is acquired again, so a caller can compare fences to find
   * out whether another process may have held the lease in between.
   */
  hold(): Promise<Fence | null>;
  /** Releases the lease, so that another process can acquire it immediately. */
  release(): Promise<void>;
}

/** Milliseconds after which a holder checks that it still holds the lease. */
const checkMs = 5_000;

export function createLease({ db, now, incarnation: holder }: Context, name: string): Lease {
  let held: { token: number; checkedAt: number; fence: Fence } | null = null;
  /** The last token of this lease; 0 before the first one. */
  let lastToken = 0;
  const detail = `the lease ${name} has passed to another process`;

  const isFree = (row: { holder: string; token: number; alive: string | null }) => {
    if (row.holder === holder) return lastToken === 0 || row.token === lastToken;
    return row.alive === null;
  };
  const take = async () => {
    const checkedAt = now();
    const row = await db.get(leaseState, { name });
    if (row && !isFree(row)) return null;
    const take = statement(takeLease, { name, holder, former: row?.token ?? 0 });
    const [taken] = (await db.write({ name: 'leases/take', statements: [take] })).of(take).rows;
    if (!taken) return null;
    const { token } = taken;
    lastToken = token;
    const check = { expect: 'row', else: 'storage_unavailable', detail } as const;
    return { token, checkedAt, fence: [statement(leaseHeld, { name, holder, token }, check)] };
  };
  const check = async ({ token, fence }: NonNullable<typeof held>) => {
    const checkedAt = now();
    const row = await db.get(leaseHeld, { name, holder, token });
    return row ? { token, checkedAt, fence } : null;
  };

  return {
    async hold() {
      if (held !== null && Math.abs(now() - held.checkedAt) >= checkMs) held = await check(held);
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
