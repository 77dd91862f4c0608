import { setTimeout as sleep } from 'node:timers/promises';
import { alone, type Placement } from '../src/domain/replicas/placement.ts';
import type { Context } from '../src/domain/shared/context.ts';
import { Leases } from '../src/domain/shared/leases.ts';
import { type Database, withOverrides } from '../src/store/database.ts';
import { insertReplica, removeReplica } from '../src/store/replicas.ts';
import type { Unit } from '../src/store/transaction.ts';
import type { DatabaseAddress, DatabaseFixture } from './databases/databases.ts';
import { type Domain, openDomain } from './domain.ts';

/** Registers another process in the database. @returns the context of that process */
export async function joined(context: Context, incarnation: string): Promise<Context> {
  await context.db.alone(insertReplica, { incarnation, name: incarnation, version: '0', started_at: 0 });
  return { ...context, incarnation };
}

/** Closes a process, as another process does when heartbeats are missing. */
export async function close({ db }: Context, incarnation: string): Promise<void> {
  await db.alone(removeReplica, { incarnation });
}

/** A process that shares its database with other processes. It has its own connections, clock, and agents. */
export interface ReplicaDomain extends Domain {
  readonly address: DatabaseAddress;
  readonly leases: Leases;
  /** Decides which leases the process should hold; by default, all. Tests may change it. */
  readonly placement: { -readonly [Field in keyof Placement]: Placement[Field] };
}

/** Opens two processes on one new database. @param options.isReplica whether they follow each other's changes */
export async function openPair(
  fixture: DatabaseFixture,
  { isReplica = false } = {},
): Promise<[ReplicaDomain, ReplicaDomain]> {
  const at = await fixture.newAddress();
  const writes = { count: 0 };
  const open = async (): Promise<ReplicaDomain> => {
    const of = { ...fixture, open: async () => seeingOthers(await fixture.open({ at }), writes) };
    const domain = await openDomain(of, { isReplica });
    await joined(domain.context, domain.context.incarnation);
    await domain.conductor.stop();
    const placement = { ...alone, shared: true };
    return { ...domain, address: at, placement, leases: new Leases(domain.context, placement) };
  };
  return [await open(), await open()];
}

/** Milliseconds, with a small margin, after which SQLite's reads see all earlier writes of other connections. */
const snapshotMs = 12;

/** Returns a database whose reads see all earlier writes of all processes. @param writes the writes of all processes */
function seeingOthers(db: Database, writes: { count: number }): Database {
  let seen = 0;
  const wait = async () => {
    if (db.kind === 'postgres') return;
    while (seen !== writes.count) {
      const { count } = writes;
      await sleep(snapshotMs);
      // Only now, because concurrent reads must also wait.
      seen = Math.max(seen, count);
    }
  };
  const count = async <Result>(write: Promise<Result>): Promise<Result> => {
    const result = await write;
    writes.count++;
    return result;
  };
  return withOverrides(db, {
    get: async (query, params) => {
      await wait();
      return db.get(query, params);
    },
    all: async (query, params) => {
      await wait();
      return db.all(query, params);
    },
    write: (unit) => count(db.write(unit)),
    alone: (query, params) => count(db.alone(query, params)),
  });
}

/**
 * Returns a context in which the first transaction with the given name waits, as in a process that is suspended just
 * before it commits.
 */
export function suspendedBefore(context: Context, name: string) {
  const { db } = context;
  const reached = Promise.withResolvers<void>();
  const resumed = Promise.withResolvers<void>();
  let waits = true;
  const write = async (unit: Unit) => {
    if (unit.name === name && waits) {
      waits = false;
      reached.resolve();
      await resumed.promise;
    }
    return db.write(unit);
  };
  return {
    context: { ...context, db: withOverrides(db, { write }) },
    reached: reached.promise,
    resume: () => resumed.resolve(),
  };
}
