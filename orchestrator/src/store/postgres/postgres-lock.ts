import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, ClientBase } from 'pg';
import { lockKey } from './migrate-postgres.ts';
import { connect, connectionSettings, lockPrefix, workPrefix } from './postgres-settings.ts';

/**
 * One process works on a database at a time: orchestrators that shared one would dispatch the same work twice. It holds
 * an advisory lock of the server on a connection of its own, for as long as it lives.
 *
 * The lock goes when that connection goes, which we may notice later than another process does that takes it. So the
 * lock is a fence too: whoever takes it ends the other processes' connections, and a new connection of ours is used only
 * once the server has said that our lock is still held. After that no write of the former holder can be committed.
 */

/** Another process works on the database. */
export class DatabaseInUse extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DatabaseInUse';
  }
}

/** A session of the server: process ids are used again, its start tells them apart. */
interface Holder {
  readonly pid: number;
  readonly start: string;
}

export interface LockEvents {
  /** The connection that holds the lock is lost: nothing is written until it is held again. */
  readonly onLost?: ((reason: Error) => void) | undefined;
  readonly onRegained?: (() => void) | undefined;
  /** Another process has taken the database. This one must end. */
  readonly onTaken: (reason: DatabaseInUse) => void;
}

export interface PostgresLock {
  readonly held: boolean;
  /** For every connection of this process, so that its like can tell them. */
  readonly applicationName: string;
  /** @throws Error unless the server says that the lock is still ours: then the connection may be used */
  admit(client: ClientBase): Promise<void>;
  release(): Promise<void>;
}

/** How often the holding connection is asked whether it lives. */
const heartbeatMs = 5_000;
/** A former holder may just be giving way. */
const patienceMs = 3_000;
const longestPauseMs = 2_000;

const holders = `from pg_locks l join pg_stat_activity a using (pid)
  where l.locktype = 'advisory' and l.classid = ${lockKey} and l.objid = 1 and l.objsubid = 2 and l.granted
    and l.database = (select oid from pg_database where datname = current_database())`;

/**
 * @throws DatabaseInUse when another process holds it
 * @throws Error when the server cannot be reached
 */
export async function takePostgresLock(url: string, events: LockEvents): Promise<PostgresLock> {
  const process = randomBytes(6).toString('hex');
  let [client, holder] = await hold(url, process, null);
  let held = true;
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
    for (let pause = 50; !released; pause = Math.min(pause * 2, longestPauseMs)) {
      try {
        const [next, as] = await hold(url, process, holder);
        if (released) {
          await next.end();
          return;
        }
        client = next;
        holder = as;
        held = true;
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
    const asked = client;
    if (held) asked.query('select 1').catch((error: Error) => lose(asked, error));
  }, heartbeatMs).unref();

  return {
    get held() {
      return held;
    },
    applicationName: workPrefix + process,
    async admit(other) {
      const { pid, start } = holder;
      const answer = await other.query(`select 1 ${holders} and a.pid = $1 and a.backend_start::text = $2`, [
        pid,
        start,
      ]);
      if (answer.rowCount === 0) throw new Error('Connection refused by ourselves: the database is not held any more');
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

/** @param former our own session that held it and was lost; the server may not know yet that it is gone */
async function hold(url: string, process: string, former: Holder | null): Promise<[Client, Holder]> {
  const client = await connect({
    ...connectionSettings({
      url,
      statementTimeout: 10,
      applicationName: lockPrefix + process,
      // A machine that is gone must not keep the lock for hours.
      server: { tcp_keepalives_idle: '10', tcp_keepalives_interval: '5', tcp_keepalives_count: '3' },
    }),
    query_timeout: 10_000,
  });
  try {
    const until = performance.now() + patienceMs;
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

async function giveWay(client: Client, former: Holder | null, patient: boolean): Promise<void> {
  const found = await client.query<Holder & { from: string | null; since: string }>(
    `select a.pid, a.backend_start::text as start, host(a.client_addr) as from,
       to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since ${holders}`,
  );
  const [other] = found.rows;
  if (other && other.pid === former?.pid && other.start === former.start)
    await client.query('select pg_terminate_backend($1)', [other.pid]);
  else if (other && !patient)
    throw new DatabaseInUse(
      `the database is in use by another Muster process, connected${other.from === null ? '' : ` from ${other.from}`} since ${other.since}: stop that one first, or choose another database`,
    );
  await sleep(50);
}

/** Ends what is left of processes that held the lock before; not those that wait for it. */
async function endOthers(client: Client, applicationName: string): Promise<void> {
  const others = `from pg_stat_activity where datname = current_database()
    and starts_with(application_name, $1) and application_name <> $2`;
  const whose = [workPrefix, applicationName];
  for (let attempt = 0; attempt < 100; attempt++) {
    const ended = await client.query(`select pg_terminate_backend(pid) ${others}`, whose);
    if (ended.rowCount === 0) return;
    await sleep(20);
  }
  throw new Error('connections of the process that held the database before do not end');
}
