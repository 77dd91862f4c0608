import { keepLease, leaseHeld, releaseLease, takeLease } from '../../store/leases.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from './context.ts';

/** Work that one process at a time does, on a database that several may share. */
/** Statements for a unit of the work, which then fails when somebody else has the lease by then. */
export type Fence = readonly Statement[];

export interface Lease {
  /** Takes the lease, or keeps it, when it is time to. Null: somebody else has it now. */
  hold(): Promise<Fence | null>;
  /** Lets others have it at once. */
  release(): Promise<void>;
}

/** How long nobody does the work when its holder died without a word. */
const lifeMs = 10_000;
/** The clocks of those that share a database differ by less. */
const skewMs = 60_000;

/**
 * @param name   of the work
 * @param holder of this process among those that share the database; the same after a restart, which then takes over
 *   from itself without waiting
 */
export function createLease({ db, now }: Context, name: string, holder: string): Lease {
  let held: { token: number; until: number } | null = null;

  const take = async () => {
    const until = now() + lifeMs;
    const take = statement(takeLease, { name, holder, now: now(), expires_ms: until, beyond_ms: until + skewMs });
    const [row] = (await db.write({ name: 'leases/take', statements: [take] })).of(take).rows;
    return row ? { token: row.token, until } : null;
  };
  const keep = async (token: number) => {
    const until = now() + lifeMs;
    const keep = statement(keepLease, { name, holder, token, expires_ms: until });
    const kept = (await db.write({ name: 'leases/keep', statements: [keep] })).of(keep).changes > 0;
    return kept ? { token, until } : null;
  };

  return {
    async hold() {
      // Half of its life is left for the work, and for finding out that another has it.
      const left = held === null ? 0 : held.until - now();
      // More than there ever was: the clock was set back.
      if (held !== null && (left < lifeMs / 2 || left > lifeMs)) held = await keep(held.token);
      held ??= await take();
      if (held === null) return null;
      const { token } = held;
      const detail = `the lease ${name} has passed to another process`;
      return [statement(leaseHeld, { name, holder, token }, { expect: 'row', else: 'storage_unavailable', detail })];
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
