import { MusterError } from '@muster/protocol';
import { withOverrides } from '../../store/database.ts';
import { leaseHeld, leaseStates, releaseLease, takeLease } from '../../store/leases.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { alone, type Placement } from '../replicas/placement.ts';
import type { Context } from './context.ts';

/**
 * Leases for work that only one of several processes on the same database may do. A lease lasts as long as its holder's
 * incarnation: another process can acquire it after it is released, or after the holder is closed.
 */

/** Statements that make a transaction fail if another process holds the lease. */
export type Fence = readonly Statement[];

export interface Lease {
  /**
   * Acquires the lease. Returns null if another process holds it or should hold it, or if this process has acquired it
   * through another `Leases` object. After null, the caller ends its work in progress and calls `release`. Returns the
   * same fence until the lease is acquired again, so a caller can compare fences to find out whether another process
   * may have held the lease in between.
   */
  hold(): Promise<Fence | null>;
  /** Releases the lease, if this process holds it, so that another process can acquire it immediately. */
  release(): Promise<void>;
}

/** A write was refused because another process has taken over the lease. The next holder continues the work. */
export class LeaseLost extends MusterError {}

/** Milliseconds after which a process checks its leases again. */
const checkMs = 5_000;
/** Fences under which a write was refused. */
const lost = new WeakSet<Fence>();

/**
 * Returns a context whose transactions all require the lease. The transactions reject with `LeaseLost` after another
 * process has taken over the lease. Statements that commit by themselves are not fenced.
 */
export function fencedBy<Part extends Pick<Context, 'db'>>(context: Part, fence: Fence): Part {
  const { db } = context;
  const write: Context['db']['write'] = async (unit) => {
    try {
      return await db.write({ ...unit, statements: [...fence, ...unit.statements] });
    } catch (error) {
      const isRefusal = error instanceof MusterError && fence.some(({ detail }) => detail === error.message);
      if (isRefusal) lost.add(fence);
      throw isRefusal ? new LeaseLost(error.code, error.message) : error;
    }
  };
  return { ...context, db: withOverrides(db, { write }) };
}

interface Held {
  readonly token: number;
  readonly fence: Fence;
}

/** The leases of one process. One read checks all of them, and one transaction acquires those that are free. */
export class Leases {
  readonly placement: Placement;
  readonly #context: Pick<Context, 'db' | 'now' | 'incarnation'>;
  readonly #held = new Map<string, Held>();
  /** The last token of each lease. */
  readonly #lastTokens = new Map<string, number>();
  readonly #wanted = new Set<string>();
  /** All leases that this process ever requested. A lost answer may hide that this process holds one of them. */
  readonly #known = new Set<string>();
  #checkedAt = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | null = null;
  #lost = 0;

  constructor({ db, now, incarnation }: Pick<Context, 'db' | 'now' | 'incarnation'>, placement: Placement = alone) {
    this.#context = { db, now, incarnation };
    this.placement = placement;
  }

  /** Number of leases that this process holds, and number of leases that other processes took from it. */
  get counts(): { readonly held: number; readonly lost: number } {
    return { held: this.#held.size, lost: this.#lost };
  }

  lease(name: string): Lease {
    return { hold: () => this.hold(name), release: () => this.release([name]) };
  }

  /** Acquires these leases together with the next requested lease. */
  want(names: readonly string[]): void {
    for (const name of names) {
      this.#wanted.add(name);
      this.#known.add(name);
    }
  }

  /** See {@link Lease.hold}. */
  async hold(name: string): Promise<Fence | null> {
    this.want([name]);
    for (let after = this.#refreshing; after !== null; after = this.#refreshing) await after.catch(() => {});
    if (this.#mustCheck(name)) {
      this.#refreshing ??= this.#refresh().finally(() => {
        this.#refreshing = null;
      });
      await this.#refreshing;
    }
    return this.placement.isPreferred(name) ? (this.#held.get(name)?.fence ?? null) : null;
  }

  /** See {@link Lease.release}. If the write fails, the next check releases the leases. */
  async release(names: readonly string[]): Promise<void> {
    for (const name of names) this.#wanted.delete(name);
    for (let after = this.#refreshing; after !== null; after = this.#refreshing) await after.catch(() => {});
    const { db, incarnation: holder } = this.#context;
    const statements = names.flatMap((name) => {
      const held = this.#held.get(name);
      this.#held.delete(name);
      return held ? [statement(releaseLease, { name, holder, token: held.token })] : [];
    });
    if (statements.length === 0) return;
    try {
      await db.write({ name: 'leases/release', statements });
    } catch (error) {
      this.#checkedAt = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  #mustCheck(name: string): boolean {
    if (Math.abs(this.#context.now() - this.#checkedAt) >= checkMs) return true;
    const held = this.#held.get(name);
    return this.placement.isPreferred(name) && (held === undefined || lost.has(held.fence));
  }

  /**
   * Checks the leases, acquires the requested leases that are free, and releases leases that this process holds
   * unintentionally, because a write failed or its answer was lost.
   */
  async #refresh(): Promise<void> {
    const { db, now, incarnation: holder } = this.#context;
    const checkedAt = now();
    // If this check fails, the next call repeats it.
    this.#checkedAt = Number.NEGATIVE_INFINITY;
    const names = [...this.#known];
    const rows = new Map((await db.all(leaseStates, { names })).map((row) => [row.name, row]));
    const takes: { name: string; take: ReturnType<typeof takeOf> }[] = [];
    const releases: Statement[] = [];
    for (const name of names) {
      const row = rows.get(name);
      const held = this.#held.get(name);
      if (held && row?.holder === holder && row.token === held.token) continue;
      // Another `Leases` of this process may have released the lease or acquired it again.
      if (held && row && row.holder !== '' && row.holder !== holder) this.#lost++;
      this.#held.delete(name);
      const lastToken = this.#lastTokens.get(name);
      const isOwn = row?.holder === holder && (lastToken === undefined || row.token === lastToken);
      const isFree = !row || (row.holder !== holder && row.alive === null);
      if (this.#wanted.has(name) && this.placement.isPreferred(name)) {
        if (isOwn || isFree) takes.push({ name, take: takeOf(name, holder, row?.token ?? 0) });
      } else if (isOwn) releases.push(statement(releaseLease, { name, holder, token: row.token }));
    }
    if (takes.length + releases.length > 0) {
      // If the outcome of the write is unknown, the row may already have a new token of this process.
      const before = takes.map(({ name }) => this.#lastTokens.get(name));
      for (const { name } of takes) this.#lastTokens.delete(name);
      const statements = [...takes.map(({ take }) => take), ...releases];
      const result = await db.write({ name: takes.length > 0 ? 'leases/take' : 'leases/release', statements });
      for (const [index, { name, take }] of takes.entries()) {
        const [taken] = result.of(take).rows;
        const token = taken?.token ?? before[index];
        if (token !== undefined) this.#lastTokens.set(name, token);
        if (taken) this.#held.set(name, { token: taken.token, fence: this.#fenceOf(name, taken.token) });
      }
    }
    this.#checkedAt = checkedAt;
  }

  #fenceOf(name: string, token: number): Fence {
    const detail = `the lease ${name} has passed to another process`;
    const held = { name, holder: this.#context.incarnation, token };
    return [statement(leaseHeld, held, { expect: 'row', else: 'storage_unavailable', detail })];
  }
}

const takeOf = (name: string, holder: string, former: number) => statement(takeLease, { name, holder, former });

/** Returns a lease that this process shares with no other work. */
export const createLease = (context: Pick<Context, 'db' | 'now' | 'incarnation'>, name: string): Lease =>
  new Leases(context).lease(name);
