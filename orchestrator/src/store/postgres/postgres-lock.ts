import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, ClientBase } from 'pg';
import { lockKey } from './migrate-postgres.ts';
import { connect, connectionSettings, lockPrefix, workPrefix } from './postgres-settings.ts';

/**
 * Only one orchestrator may use a database, because two would dispatch the same work twice. The orchestrator holds an
 * advisory lock on a separate connection while it runs.
 *
 * The server releases the lock when this connection closes, so another process may take the lock before the former
 * holder detects the loss. Therefore, a new holder terminates the connections of other processes, and a process uses a
 * new connection only after the server has confirmed the lock. After that, no write by the former holder can be
 * committed.
 */

export class DatabaseInUse extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DatabaseInUse';
  }
}

/** A new connection is refused because the server does not confirm that this process holds the lock. */
export class LockNotHeld extends Error {
  constructor() {
    super('this process does not hold the database lock');
    this.name = 'LockNotHeld';
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

export interface LockEvents {
  /**
   * Called when the connection that holds the lock is lost. Writes are refused until the process has acquired the
   * lock again.
   */
  readonly onLost?: ((reason: Error) => void) | undefined;
  readonly onRegained?: (() => void) | undefined;
  /** Called when another process has taken over the database. This process must exit. */
  readonly onTaken: (reason: DatabaseInUse) => void;
}

export interface PostgresLock {
  readonly held: boolean;
  /** Number of times that the lock has been acquired. */
  readonly acquisitions: number;
  /** Must be set on every connection of this process, so that other processes can identify its connections. */
  readonly applicationName: string;
  /** Admits a new connection. @throws LockNotHeld unless the server confirms that this process holds the lock */
  admit(client: ClientBase): Promise<void>;
  release(): Promise<void>;
}

/** Interval, in milliseconds, between queries that check the connection that holds the lock. */
const heartbeatMs = 5_000;
/** Milliseconds to wait for a former holder to exit. */
const handoverMs = 3_000;
const maxPauseMs = 2_000;

const holders = `from pg_locks l join pg_stat_activity a using (pid)
  where l.locktype = 'advisory' and l.classid = ${lockKey} and l.objid = 1 and l.objsubid = 2 and l.granted
    and l.database = (select oid from pg_database where datname = current_database())`;

/**
 * @throws DatabaseInUse if another process holds the lock
 * @throws Error if the server cannot be reached
 */
export async function takePostgresLock(url: string, events: LockEvents): Promise<PostgresLock> {
  const process = randomBytes(6).toString('hex');
  let [client, holder] = await acquire(url, process, null);
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
    for (let pause = 50; !released; pause = Math.min(pause * 2, maxPauseMs)) {
      try {
        const [next, as] = await acquire(url, process, holder);
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
        if (error instanceof DatabaseInUse) {
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
    applicationName: workPrefix + process,
    async admit(other) {
      const { pid, start } = holder;
      const answer = await other.query(`select 1 ${holders} and a.pid = $1 and a.backend_start::text = $2`, [
        pid,
        start,
      ]);
      if (answer.rowCount === 0) throw new LockNotHeld();
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

/** @param former the lost connection that held the lock; the server may not have closed it yet */
async function acquire(url: string, process: string, former: Holder | null): Promise<[Client, Holder]> {
  const client = await connect({
    ...connectionSettings({
      url,
      statementTimeout: 10,
      applicationName: lockPrefix + process,
      // With these settings, the server releases a disconnected machine's lock within a minute.
      server: { tcp_keepalives_idle: '10', tcp_keepalives_interval: '5', tcp_keepalives_count: '3' },
    }),
    query_timeout: 10_000,
  });
  try {
    const until = performance.now() + handoverMs;
    for (;;) {
      const tried = await client.query<{ got: boolean }>(`select pg_try_advisory_lock(${lockKey}, 1) as got`);
      if (tried.rows[0]?.got) break;
      await giveWay(client, former, performance.now() < until);
    }
    await endOthers(client, workPrefix + process);
    const self = await client.query<Holder>(
      'select pid, backend_start::text as start from pg_stat_activity where pid = pg_backend_pid()',
    );
    return [client, self.rows[0]!];
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

async function giveWay(client: Client, former: Holder | null, mayWait: boolean): Promise<void> {
  const found = await client.query<Holder & { from: string | null; since: string }>(
    `select a.pid, a.backend_start::text as start, host(a.client_addr) as from,
       to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since ${holders}`,
  );
  const [other] = found.rows;
  if (other && other.pid === former?.pid && other.start === former.start)
    await client.query('select pg_terminate_backend($1)', [other.pid]);
  else if (other && !mayWait)
    throw new DatabaseInUse(
      `the database is in use by another Muster process, connected${other.from === null ? '' : ` from ${other.from}`} since ${other.since}: stop that one first, or choose another database`,
    );
  await sleep(50);
}

/** Terminates connections of former lock holders, but not of processes that wait for the lock. */
async function endOthers(client: Client, applicationName: string): Promise<void> {
  const others = `from pg_stat_activity where datname = current_database()
    and starts_with(application_name, $1) and application_name <> $2`;
  const whose = [workPrefix, applicationName];
  for (let attempt = 0; attempt < 100; attempt++) {
    const ended = await client.query(`select pg_terminate_backend(pid) ${others}`, whose);
    if (ended.rowCount === 0) return;
    await sleep(20);
  }
  throw new Error('the server did not end the connections of the former lock holder');
}
