import { hash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, ClientBase } from 'pg';
import { SchemaRefused } from '../migrate.ts';
import { lockKey, type OtherReplica, unstatedSchema } from './migrate-postgres.ts';
import { LockNotHeld } from './postgres-failure.ts';
import { connect, connectionSettings, lockPrefix, sharedWorkPrefix, workPrefix } from './postgres-settings.ts';

/**
 * Keeps other processes from using a database. A process holds an advisory lock on a separate connection while it runs.
 * Replicas hold the lock together, and each has a second lock for its name. All other processes, such as an
 * orchestrator without replicas and the offline commands, hold it exclusively.
 *
 * The server releases the lock when this connection closes, so another process may take the lock before the previous
 * holder detects the loss. Therefore, a new holder terminates the connections of the processes that must not use the
 * database at the same time, and a process uses a new connection only after the server has confirmed the lock. After
 * that, no write by the previous holder can be committed. Replicas do not terminate each other's connections: their
 * transactions have preconditions that refuse a closed replica.
 */

export class DatabaseInUse extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DatabaseInUse';
  }
}

/**
 * A connection as reported by the server. The start time distinguishes connections whose server processes had the same
 * PID.
 */
interface Holder {
  readonly pid: number;
  readonly start: string;
}

/** A holder of the lock, for error messages. */
interface OtherHolder extends Holder {
  readonly application: string;
  readonly from: string | null;
  readonly since: string;
}

/** How a process uses the database. */
export interface LockMode {
  /** Name of this replica, which shares the database with other replicas; null to use the database alone. */
  readonly replica: string | null;
  /** Newest schema version that this process can use, for the replicas that migrate the database. */
  readonly schema?: number;
  /**
   * Called on a connection that has acquired the lost lock again, before this process uses the database. Another
   * replica may have migrated the database in the meantime.
   * @throws SchemaRefused if this process can no longer use the database
   */
  readonly checkSchema?: (client: ClientBase) => Promise<unknown>;
}

export interface LockEvents {
  /**
   * Called when the connection that holds the lock is lost. Writes are refused until the process has acquired the
   * lock again.
   */
  readonly onLost?: ((reason: Error) => void) | undefined;
  readonly onRegained?: (() => void) | undefined;
  /** Called when another process has taken over or migrated the database. This process must exit. */
  readonly onTaken: (reason: DatabaseInUse | SchemaRefused) => void;
}

export interface PostgresLock {
  readonly held: boolean;
  /** Number of times that the lock has been acquired. */
  readonly acquisitions: number;
  /** Must be set on every connection of this process, so that other processes can identify its connections. */
  readonly applicationName: string;
  /** Admits a new connection. @throws LockNotHeld unless the server confirms that this process holds the lock */
  admit(client: ClientBase): Promise<void>;
  /** Returns the other replicas that hold the lock. */
  others(client: ClientBase): Promise<OtherReplica[]>;
  release(): Promise<void>;
}

/** Interval, in milliseconds, between queries that check the connection that holds the lock. */
const heartbeatMs = 5_000;
/** Milliseconds to wait for a previous holder to exit. */
const handoverMs = 3_000;
const maxPauseMs = 2_000;

/** Class of the locks for the names of replicas. `lockKey` is the class of the lock for the database. */
const nameLockClass = lockKey + 1;

const holdersOf = (lockClass: number, object: number) => `from pg_locks l join pg_stat_activity a using (pid)
  where l.locktype = 'advisory' and l.classid = ${lockClass} and l.objid = ${object} and l.objsubid = 2 and l.granted
    and l.database = (select oid from pg_database where datname = current_database())`;
const holders = holdersOf(lockKey, 1);

/** Returns the number that represents a name in its lock. */
const nameLockOf = (name: string): number => Number.parseInt(hash('sha256', name).slice(0, 7), 16);

/**
 * @throws DatabaseInUse if the lock is held by a process that must not share the database
 * @throws Error if the server cannot be reached
 */
export async function takePostgresLock(
  url: string,
  { replica, schema, checkSchema }: LockMode,
  events: LockEvents,
): Promise<PostgresLock> {
  const process = randomBytes(6).toString('hex');
  const wish = { url, process, replica, ...(schema === undefined ? {} : { schema }) };
  let [client, holder] = await acquire(wish, null);
  let held = true;
  let acquisitions = 1;
  let released = false;
  const stopping = new AbortController();

  const lose = (of: Client, reason: Error) => {
    if (of !== client || !held || released) return;
    held = false;
    events.onLost?.(reason);
    void of.end().catch(() => undefined);
    void regain();
  };

  const regain = async () => {
    let former = holder;
    for (let pause = 50; !released; pause = Math.min(pause * 2, maxPauseMs)) {
      try {
        const [next, as] = await acquire(wish, former);
        former = as;
        try {
          await checkSchema?.(next);
        } catch (error) {
          await next.end().catch(() => undefined);
          throw error;
        }
        if (released) {
          await next.end();
          return;
        }
        client = next;
        holder = as;
        held = true;
        acquisitions++;
        watch(next);
        events.onRegained?.();
        return;
      } catch (error) {
        if (error instanceof DatabaseInUse || error instanceof SchemaRefused) {
          released = true;
          events.onTaken(error);
          return;
        }
        await sleep(pause, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
      }
    }
  };

  const watch = (watched: Client) => {
    watched.on('error', (error) => lose(watched, error));
    watched.on('end', () => lose(watched, new Error('the connection ended')));
  };
  watch(client);
  const heartbeat = setInterval(() => {
    const queried = client;
    if (held) queried.query('select 1').catch((error: Error) => lose(queried, error));
  }, heartbeatMs).unref();

  return {
    get held() {
      return held;
    },
    get acquisitions() {
      return acquisitions;
    },
    applicationName: workName(wish),
    async admit(other) {
      const { pid, start } = holder;
      const answer = await other.query(`select 1 ${holders} and a.pid = $1 and a.backend_start::text = $2`, [
        pid,
        start,
      ]);
      if (answer.rowCount === 0) throw new LockNotHeld();
    },
    async others(other) {
      const { rows } = await other.query<{ application: string }>(
        `select a.application_name as application ${holders} and a.pid <> $1 order by 1`,
        [holder.pid],
      );
      // A proxy may change application names. Only replicas hold the lock together with this replica.
      return rows.map((row) => replicaOf(row) ?? { name: JSON.stringify(row.application), schema: unstatedSchema });
    },
    async release() {
      if (released) return;
      released = true;
      clearInterval(heartbeat);
      stopping.abort();
      await client.end().catch(() => undefined);
    },
  };
}

/** Options for a lock to acquire. */
interface Wish extends Omit<LockMode, 'checkSchema'> {
  readonly url: string;
  /** Random text that identifies the process. */
  readonly process: string;
}

const workName = ({ process, replica }: Wish): string => (replica === null ? workPrefix : sharedWorkPrefix) + process;
/** Returns at most 63 bytes, which is PostgreSQL's limit, for names of 32 characters. */
const lockName = ({ process, replica, schema }: Wish): string =>
  lockPrefix + process + (replica === null ? '' : `:${replica}${schema === undefined ? '' : `:${schema}`}`);

/** @param former the lost connection that held the lock; the server may not have closed it yet */
async function acquire(wish: Wish, former: Holder | null): Promise<[Client, Holder]> {
  const client = await connect({
    ...connectionSettings({
      url: wish.url,
      statementTimeout: 10,
      applicationName: lockName(wish),
      // With these settings, the server releases a disconnected machine's lock within a minute.
      server: { tcp_keepalives_idle: '10', tcp_keepalives_interval: '5', tcp_keepalives_count: '3' },
    }),
    query_timeout: 10_000,
  });
  try {
    const until = performance.now() + handoverMs;
    const { replica } = wish;
    if (replica !== null) await take(client, namedLock(replica), former, until);
    await take(client, databaseLock(replica), former, until);
    await endOthers(client, wish);
    const self = await client.query<Holder>(
      'select pid, backend_start::text as start from pg_stat_activity where pid = pg_backend_pid()',
    );
    return [client, self.rows[0]!];
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

/** An advisory lock that the process tries to take. */
interface Taking {
  /** Query that tries to take the lock, and returns `got`. */
  readonly sql: string;
  /** The `from` and `where` clauses of a query for the processes that hold the lock. */
  readonly heldBy: string;
  /** Returns the error message. */
  refusal(others: readonly OtherHolder[]): string;
}

const databaseLock = (replica: string | null): Taking => ({
  sql: `select pg_try_advisory_lock${replica === null ? '' : '_shared'}(${lockKey}, 1) as got`,
  heldBy: holders,
  refusal(others) {
    const replicas = others.flatMap((other) => replicaOf(other)?.name ?? []).sort();
    if (replicas.length > 0)
      return `the database is in use by the ${replicas.length === 1 ? 'replica' : 'replicas'} ${replicas.join(', ')}: stop ${replicas.length === 1 ? 'it' : 'them'} first, or, to start another replica, set replica.name`;
    const [other] = others as [OtherHolder];
    const stop = 'stop that one first, or choose another database';
    const alone = replica === null ? '' : ', which requires exclusive use because it has no replica.name';
    return `the database is in use by another Muster process, ${connectionOf(other)}${alone}: ${stop}`;
  },
});

const namedLock = (name: string): Taking => ({
  sql: `select pg_try_advisory_lock(${nameLockClass}, ${nameLockOf(name)}) as got`,
  heldBy: holdersOf(nameLockClass, nameLockOf(name)),
  refusal: ([other]) =>
    `a replica with the name ${name} is running, ${connectionOf(other!)}: stop that one first, or set another replica.name`,
});

const connectionOf = ({ from, since }: OtherHolder): string =>
  `connected${from === null ? '' : ` from ${from}`} since ${since}`;

/** Returns the replica that holds the lock; null if another process holds it. */
function replicaOf({ application }: Pick<OtherHolder, 'application'>): OtherReplica | null {
  const [, name, schema] = /^muster-lock:[^:]*:([^:]+)(?::(\d+))?$/.exec(application) ?? [];
  return name === undefined ? null : { name, schema: schema === undefined ? unstatedSchema : Number(schema) };
}

/** @param until time until which to wait for the holders to release the lock, in milliseconds of `performance.now` */
async function take(client: Client, taking: Taking, former: Holder | null, until: number): Promise<void> {
  for (;;) {
    const tried = await client.query<{ got: boolean }>(taking.sql);
    if (tried.rows[0]?.got) return;
    await giveWay(client, taking, former, performance.now() < until);
  }
}

async function giveWay(client: Client, taking: Taking, former: Holder | null, mayWait: boolean): Promise<void> {
  const { rows } = await client.query<OtherHolder>(
    `select a.pid, a.backend_start::text as start, a.application_name as application, host(a.client_addr) as from,
       to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since ${taking.heldBy}`,
  );
  const own = rows.find(({ pid, start }) => pid === former?.pid && start === former.start);
  if (own) await client.query('select pg_terminate_backend($1)', [own.pid]);
  else if (rows.length > 0 && !mayWait) throw new DatabaseInUse(taking.refusal(rows));
  await sleep(50);
}

/**
 * Terminates connections of previous lock holders that must not use the database with this process, but not of
 * processes that wait for the lock.
 */
async function endOthers(client: Client, wish: Wish): Promise<void> {
  const others = `from pg_stat_activity where datname = current_database()
    and starts_with(application_name, $1) and application_name <> $2 and not starts_with(application_name, $3)`;
  const spared = wish.replica === null ? workName(wish) : sharedWorkPrefix;
  const whose = [workPrefix, workName(wish), spared];
  for (let attempt = 0; attempt < 100; attempt++) {
    const ended = await client.query(`select pg_terminate_backend(pid) ${others}`, whose);
    if (ended.rowCount === 0) return;
    await sleep(20);
  }
  throw new Error('the server did not end the connections of the previous lock holder');
}
