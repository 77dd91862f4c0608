import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { testTime } from '../../../test/databases/databases.ts';
import { oneMore } from '../../../test/databases/migrations.ts';
import { PostgresMissing, type PostgresServer, startPostgres } from '../../../test/databases/postgres-server.ts';
import { inThisDatabase } from '../../../test/databases/this-database.ts';
import { sampleAt } from '../../../test/samples.ts';
import { withinRequest } from '../../request-fields.ts';
import type { Database } from '../database.ts';
import { migrations } from '../migrations/index.ts';
import type { Migration } from '../migrations/migration.ts';
import { putSetting } from '../queries/settings.ts';
import { defineQuery } from '../query.ts';
import { claimReplicaKey, insertReplica, otherReplicas, raiseBeat } from '../replicas.ts';
import { openPostgresSamples } from '../samples/samples-postgres.ts';
import { statement } from '../transaction.ts';
import { openPostgres, type PostgresOptions } from './postgres.ts';
import { postgresFailure } from './postgres-failure.ts';
import { DatabaseInUse, takePostgresLock } from './postgres-lock.ts';
import { connect, connectionSettings } from './postgres-settings.ts';

const allSettings = defineQuery('test/all settings', (db, _: Record<never, never>) =>
  db.selectFrom('settings').selectAll().orderBy('key'),
);

const serverSettings = defineQuery('test/server settings', (db, _: Record<never, never>) =>
  db.selectNoFrom([
    sql<string>`current_setting('work_mem')`.as('work_mem'),
    sql<string>`current_setting('synchronous_commit')`.as('synchronous_commit'),
    sql<string>`current_setting('statement_timeout')`.as('statement_timeout'),
  ]),
);

/** A migration after which earlier releases cannot use the database. */
const oneMoreStill = { version: oneMore.version + 1, name: 'one more still', statements: () => [] };

describe('an orchestrator on PostgreSQL', () => {
  let server: PostgresServer | undefined;
  let missing: PostgresMissing | undefined;
  let url = '';
  const open: Database[] = [];

  beforeAll(async () => {
    try {
      server = await startPostgres();
    } catch (error) {
      if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
      missing = error;
    }
  });
  beforeEach(async (context) => {
    if (missing) context.skip(missing.message);
    url = await server!.createDatabase();
  });
  afterEach(async () => {
    for (const database of open.splice(0)) await database.close();
  });
  afterAll(() => server?.stop());

  interface LockEvents {
    lost: number;
    regained: number;
    taken: Error[];
  }
  async function openAlone({
    replica = null,
    atLoss = () => {},
    ...options
  }: Partial<PostgresOptions> & { replica?: string | null; atLoss?: () => void } = {}): Promise<{
    db: Database;
    events: LockEvents;
  }> {
    const events: LockEvents = { lost: 0, regained: 0, taken: [] };
    const db = await openPostgres({
      url,
      now: () => testTime,
      statementTimeout: 2,
      lock: {
        replica,
        onLost: () => {
          events.lost++;
          atLoss();
        },
        onRegained: () => void events.regained++,
        onTaken: (reason) => void events.taken.push(reason),
      },
      ...options,
    });
    open.push(db);
    return { db, events };
  }
  const put = (db: Database, key: string) =>
    db.write({ name: 'test/put', statements: [statement(putSetting, { key, value: 'x' })] });
  /** Runs statements on another connection to the server. */
  async function beside(
    act: (query: (text: string) => Promise<{ rows: Record<string, unknown>[] }>) => Promise<unknown>,
  ) {
    const client = await connect(connectionSettings({ url }));
    try {
      return await act((text) => client.query(text) as never);
    } finally {
      await client.end();
    }
  }
  const until = (what: string, so: () => boolean | Promise<boolean>) => expect.poll(so, { message: what }).toBe(true);
  const theLock = `select pid from pg_locks where locktype = 'advisory' and objid = 1 and granted and ${inThisDatabase}`;
  /** Terminates the holder's connection and takes the lock. Retries if the holder reacquires the lock first. */
  async function takeTheLock(query: (text: string) => Promise<{ rows: Record<string, unknown>[] }>): Promise<void> {
    for (let got = false; !got; ) {
      await query(`select pg_terminate_backend(pid) from (${theLock}) as held`);
      got = (await query('select pg_try_advisory_lock(1836413812, 1) as got')).rows[0]?.got === true;
    }
  }

  test('refuses a second orchestrator until the first orchestrator has stopped', async () => {
    const { db } = await openAlone();
    await expect(openAlone()).rejects.toThrow(/in use by another Muster process.*: stop that one first/);
    await put(db, 'first');
    await db.close();
    const { db: second } = await openAlone();
    expect(await second.all(allSettings, {})).toEqual([{ key: 'first', value: 'x' }]);
  });

  test('lets replicas with different names share the database', async () => {
    const { db: a, events } = await openAlone({ replica: 'a' });
    await put(a, 'a');
    const { db: b } = await openAlone({ replica: 'b' });
    await put(b, 'b');
    await put(a, 'a again');
    expect((await b.all(allSettings, {})).map(({ key }) => key)).toEqual(['a', 'a again', 'b']);
    await expect(openAlone({ replica: 'a' })).rejects.toThrow(
      /a replica with the name a is running, connected .*since/,
    );
    await expect(openAlone()).rejects.toThrow(/in use by the replicas a, b: stop them first/);
    await a.close();
    await put((await openAlone({ replica: 'a' })).db, 'next');
    expect(events).toEqual({ lost: 0, regained: 0, taken: [] });
  });

  test('refuses a replica while a process uses the database alone', async () => {
    const { db } = await openAlone();
    await expect(openAlone({ replica: 'a' })).rejects.toThrow(
      /requires exclusive use because it has no replica.name: stop/,
    );
    await db.close();
    await put((await openAlone({ replica: 'a' })).db, 'a');
  });

  test('lets a replica reacquire its lost lock while other replicas hold the lock', async () => {
    const { db: a, events } = await openAlone({ replica: 'a' });
    const { db: b, events: others } = await openAlone({ replica: 'b' });
    await put(a, 'before');
    await beside((query) =>
      query("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'muster-lock:%:a:%'"),
    );
    await until('the lock is missed', () => events.lost === 1);
    await until('the lock is held again', () => events.regained === 1);
    await put(a, 'after');
    await put(b, 'after');
    expect([events.taken, others]).toEqual([[], { lost: 0, regained: 0, taken: [] }]);
  });

  test('sends no heartbeats as a replica while the lock is lost', async () => {
    const none = { incarnation: 'none', ready: 1, config_digest: '' } as const;
    for (const replica of [null, 'a']) {
      const beats: Promise<unknown[]>[] = [];
      const atLoss = () => void beats.push(Promise.allSettled([db.alone(raiseBeat, none)]));
      const { db, events } = await openAlone({ replica, atLoss });
      // A new connection would need the lock.
      await db.alone(raiseBeat, none);
      await beside((query) =>
        query("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'muster-lock:%'"),
      );
      await until('the lock is missed', () => events.lost === 1);
      expect(await beats[0]).toMatchObject([{ status: replica === null ? 'fulfilled' : 'rejected' }]);
      await until('the lock is held again', () => events.regained === 1);
      await db.alone(raiseBeat, none);
      await db.close();
    }
  });

  describe('a replica of a newer release', () => {
    const compatible = [...migrations, { ...oneMore, compatibleFrom: migrations.length }];
    const versionIn = () =>
      beside(async (query) => (await query('select max(version) as version from schema_version')).rows[0]?.version);

    test('migrates while other replicas run if they can use the database afterward', async () => {
      const { db: older } = await openAlone({ replica: 'a' });
      const { db: newer } = await openAlone({ replica: 'b', migrations: compatible });
      expect(Number(await versionIn())).toBe(oneMore.version);
      await put(older, 'older');
      await put(newer, 'newer');
      await put((await openAlone({ replica: 'c' })).db, 'another older');
    });

    test('refuses to migrate while running replicas could not use the database afterward, and names them', async () => {
      const { db: a } = await openAlone({ replica: 'a' });
      const { db: c } = await openAlone({ replica: 'c' });
      const start = () => openAlone({ replica: 'b', migrations: [...compatible, oneMoreStill] });
      await expect(start()).rejects.toThrow('after which the replicas a, c could not use it; nothing was changed');
      expect(Number(await versionIn())).toBe(migrations.length);
      await put(a, 'still');
      await a.close();
      await expect(start()).rejects.toThrow('the replica c could not use it');
      await c.close();
      // Replicas of the new release can start at the same time.
      await Promise.all([start(), openAlone({ replica: 'd', migrations: [...compatible, oneMoreStill] })]);
      await expect(openAlone({ replica: 'a' })).rejects.toThrow('A newer release wrote it');
    });

    test('reads the schema only after the migration of another replica has ended', async () => {
      await openAlone({ replica: 'a' });
      await beside(async (query) => {
        await query('begin');
        await query('select pg_advisory_xact_lock(1836413812)');
        const older = openAlone({ replica: 'c' });
        await until('it waits for the migration', async () => {
          const waiting = await query(
            `select 1 from pg_locks where locktype = 'advisory' and not granted and ${inThisDatabase}`,
          );
          return waiting.rows.length > 0;
        });
        await query(`insert into schema_version values (${oneMore.version}, 'newer', 0, ${oneMore.version})`);
        await query('commit');
        await expect(older).rejects.toThrow('A newer release wrote it');
      });
    });

    test('ends a replica that lost its lock while the database was migrated', async () => {
      const { db, events } = await openAlone({ replica: 'a' });
      await put(db, 'before');
      await beside(async (query) => {
        await query('begin');
        // Blocks the replica from reacquiring its lock, as a migration does.
        await query('select pg_advisory_xact_lock(1836413812)');
        await query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'muster-lock:%'",
        );
        await until('the lock is missed', () => events.lost === 1);
        await query(`insert into schema_version values (${oneMore.version}, 'newer', 0, ${oneMore.version})`);
        await query('commit');
      });
      await until('it ends', () => events.taken.length === 1);
      expect(events.taken[0]).toMatchObject({ message: expect.stringContaining('A newer release wrote it') });
      expect(events.regained).toBe(0);
      await expect(put(db, 'after')).rejects.toMatchObject({ code: 'storage_unavailable' });
    });

    test('closes replicas that have neither a lock nor heartbeats before it migrates, and refuses to migrate while a replica without a lock sends heartbeats', async () => {
      const { db: first } = await openAlone({ replica: 'a' });
      const register = (name: string) =>
        first.alone(insertReplica, { incarnation: `of ${name}`, name, version: '1', started_at: testTime });
      for (const name of ['a', 'former', 'live']) await register(name);
      const start = () => openAlone({ replica: 'b', migrations: [...compatible, oneMoreStill], closeAfterMs: 1_000 });
      await first.close();
      await beside(async (query) => {
        let beats = true;
        const beating = (async () => {
          while (beats) {
            await query("update replicas set beat = beat + 1 where incarnation = 'of live'");
            await sleep(20);
          }
        })();
        await expect(start()).rejects.toThrow('the replica live could not use it; nothing was changed');
        expect(Number(await versionIn())).toBe(migrations.length);
        beats = false;
        await beating;
        const { db } = await start();
        expect(await db.all(otherReplicas, { incarnation: '' })).toEqual([]);
      });
      expect(Number(await versionIn())).toBe(oneMoreStill.version);
    });

    test('does not block heartbeats while a migration waits for a table', async () => {
      const { db } = await openAlone({ replica: 'a' });
      const incarnation = 'of a';
      await db.alone(insertReplica, { incarnation, name: 'a', version: '1', started_at: testTime });
      const statements: Migration['statements'] = ({ db: tables, dialect }) => [
        tables.schema.alterTable('replicas').addColumn('later', dialect.columns.text),
      ];
      const adding = { version: oneMore.version, name: 'later', compatibleFrom: migrations.length, statements };
      await beside(async (query) => {
        // Locks the table as pg_dump does.
        await query('begin; lock table replicas in access share mode');
        const start = openAlone({ replica: 'b', migrations: [...migrations, adding], lockPauseMs: 100 });
        await until('it waits for the table', async () => {
          const waiting = await query(
            `select 1 from pg_locks where locktype = 'relation' and not granted and ${inThisDatabase}`,
          );
          return waiting.rows.length > 0;
        });
        // This heartbeat would fail after three seconds if it waited for the dump.
        await db.alone(raiseBeat, { incarnation, ready: 1, config_digest: '' });
        await query('commit');
        await start;
      });
      expect(Number(await versionIn())).toBe(oneMore.version);
    });

    test('refuses to migrate while a process whose application name was changed by a proxy holds the lock', async () => {
      await openAlone({ replica: 'a' });
      await beside(async (query) => {
        await query("set application_name = 'muster-lock:0011:c:99 - 10.0.0.1:4000'");
        await query('select pg_advisory_lock_shared(1836413812, 1)');
        const start = openAlone({ replica: 'b', migrations: [...migrations, oneMore] });
        await expect(start).rejects.toThrow('the replicas "muster-lock:0011:c:99 - 10.0.0.1:4000", a could not use it');
      });
    });

    test('compares the replicas’ keys before it migrates the database', async () => {
      const { db } = await openAlone({ replica: 'a' });
      await db.write({
        name: 'test/claim',
        statements: [statement(claimReplicaKey, { kind: 'identity', fingerprint: 'of the fleet' })],
      });
      const stored: unknown[] = [];
      const start = openAlone({
        replica: 'b',
        migrations: compatible,
        checkKeys: (keys) => {
          stored.push(...keys);
          throw new Error('other keys');
        },
      });
      await expect(start).rejects.toThrow('other keys');
      expect(stored).toEqual([{ kind: 'identity', fingerprint: 'of the fleet' }]);
      expect(Number(await versionIn())).toBe(migrations.length);
    });
  });

  test('ends a replica that lost its lock, once another process uses the database exclusively', async () => {
    const { db: a, events } = await openAlone({ replica: 'a' });
    await put(a, 'a');
    await beside(async (query) => {
      for (let got = false; !got; ) {
        await query(`select pg_terminate_backend(pid) from (${theLock}) as held`);
        got = (await query('select pg_try_advisory_lock(1836413812, 1) as got')).rows[0]?.got === true;
      }
      await until('it is notified', () => events.taken.length === 1);
    });
    const { db } = await openAlone();
    await put(db, 'alone');
    await beside(async (query) => {
      const left = await query(
        "select 1 from pg_stat_activity where application_name like 'muster-orchestrator:replica:%'",
      );
      expect(left.rows).toEqual([]);
    });
  });

  test('refuses writes while the lock is lost, and recovers', async () => {
    const { db, events } = await openAlone();
    await put(db, 'before');
    await beside((query) => query(`select pg_terminate_backend(pid) from (${theLock}) as held`));
    await until('the lock is missed', () => events.lost === 1);
    await until('the lock is held again', () => events.regained === 1);
    await put(db, 'after');
    expect(events.taken).toEqual([]);
  });

  test('reports the database as unavailable if a new connection finds that the lock was released', async () => {
    const lock = await takePostgresLock(url, { replica: null }, { onTaken: () => {} });
    await lock.release();
    await beside((query) =>
      until('the server releases the lock', async () => (await query(theLock)).rows.length === 0),
    );
    const client = await connect(connectionSettings({ url }));
    const refusal = await lock.admit(client).then(
      () => null,
      (error: unknown) => error,
    );
    await client.end();
    expect(postgresFailure(refusal)).toEqual({ kind: 'unavailable' });
  });

  test('refuses to write after another process has taken the database', async () => {
    const { db, events } = await openAlone();
    await put(db, 'mine');
    // Simulates a lost lock connection. Another process takes the lock before the holder detects the loss.
    await beside(async (query) => {
      await takeTheLock(query);
      const failures = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          put(db, `late-${index}`).then(
            () => null,
            (error: Error) => error,
          ),
        ),
      );
      // Writes on existing connections may succeed, because only another orchestrator would terminate those
      // connections.
      expect(failures.filter((failure) => failure !== null).length).toBeGreaterThan(0);
      await until('it is notified', () => events.taken.length === 1);
      expect(events.taken[0]).toBeInstanceOf(DatabaseInUse);
      await expect(put(db, 'never')).rejects.toMatchObject({ code: 'storage_unavailable' });
    });
  });

  test('terminates the connections of the previous lock holder', async () => {
    const { db, events } = await openAlone();
    await Promise.all(Array.from({ length: 8 }, (_, index) => put(db, `n-${index}`)));
    const working = `select 1 from pg_stat_activity where datname = current_database()
      and application_name like 'muster-orchestrator:%'`;
    await beside(async (query) => {
      await takeTheLock(query);
      await until('it is notified', () => events.taken.length === 1);
      expect((await query(working)).rows.length).toBeGreaterThan(0);
    });
    // In production, the previous process exits. None of its pending writes can commit.
    const { db: second } = await openAlone();
    await beside(async (query) => {
      expect((await query(working)).rows).toEqual([]);
    });
    await put(second, 'second');
  });

  test('refuses reads and writes while the server is down, and recovers without losing acknowledged writes', async () => {
    const { db, events } = await openAlone();
    const samples = await openPostgresSamples({ url, retentionSecs: 86_400 });
    const answered = new Set<string>();
    const refused = new Set<string>();
    let going = true;
    const writer = async (person: number) => {
      for (let count = 0; going; count++) {
        const key = `p${person}-${String(count).padStart(5, '0')}`;
        await put(db, key).then(
          () => answered.add(key),
          (error: { code?: string }) => refused.add(String(error.code)),
        );
        if (events.lost > events.regained) await sleep(5);
      }
    };
    const writers = Promise.all([0, 1, 2, 3].map(writer));
    for (let round = 1; round <= 2; round++) {
      const before = answered.size;
      await until('it is written to', () => answered.size > before + 20);
      await withinRequest('changing', async () => {
        await put(db, `request-${round}`);
        await server!.kill();
        await until('it is missed', () => events.lost === round);
        await expect(put(db, 'x')).rejects.toMatchObject({ code: 'outcome_unknown' });
        await expect(db.all(allSettings, {})).rejects.toMatchObject({ code: 'outcome_unknown' });
      });
      await expect(put(db, 'x')).rejects.toMatchObject({ code: 'storage_unavailable' });
      await expect(db.all(allSettings, {})).rejects.toMatchObject({ code: 'storage_unavailable' });
      await expect(samples.add('a', [sampleAt(round)])).rejects.toMatchObject({ code: 'storage_unavailable' });
      await expect(samples.since('a', 0, 9)).rejects.toMatchObject({ code: 'storage_unavailable' });
      await server!.start();
      await until('it is back', () => events.regained === round);
      // An agent resends samples that were not acknowledged.
      await samples.add('a', [sampleAt(round)]);
    }
    expect(await samples.since('a', 0, 9)).toEqual([sampleAt(1), sampleAt(2)]);
    await samples.close();
    await until('it is written to again', () => answered.size > 60);
    going = false;
    await writers;
    const there = new Set((await db.all(allSettings, {})).map(({ key }) => key));
    expect([...answered].filter((key) => !there.has(key))).toEqual([]);
    for (const code of refused) expect(['storage_unavailable', 'outcome_unknown']).toContain(code);
    expect(events.taken).toEqual([]);
  });

  test('cancels a statement after its timeout, and reports the database as unavailable', async () => {
    const { db } = await openAlone({ statementTimeout: 1 });
    await beside(async (query) => {
      await query('begin');
      await query('lock table settings in access exclusive mode');
      await expect(put(db, 'x')).rejects.toMatchObject({ code: 'storage_unavailable' });
      await query('rollback');
    });
    await put(db, 'x');
  });

  test('reads and writes after another process has added a column', async () => {
    const { db } = await openAlone();
    const readInTransaction = () => db.write({ name: 'test/read', statements: [statement(allSettings, {})] });
    // Several connections in the pool have prepared the statement.
    await Promise.all(Array.from({ length: 20 }, () => db.all(allSettings, {})));
    await db.alone(allSettings, {});
    await Promise.all(Array.from({ length: 20 }, readInTransaction));
    await beside((query) => query('alter table settings add column later text'));
    expect(await db.all(allSettings, {})).toEqual([]);
    expect((await db.alone(allSettings, {})).rows).toEqual([]);
    expect((await readInTransaction()).results[0]?.rows).toEqual([]);
    await put(db, 'after');
    expect(await db.all(allSettings, {})).toMatchObject([{ key: 'after' }]);
  });

  test('keeps the options in the URL, and enables durable commits', async () => {
    const database = new URL(url).pathname.slice(1);
    await beside((query) => query(`alter role postgres in database ${database} set synchronous_commit = off`));
    const { db } = await openAlone({ url: `${url}?options=-c%20work_mem%3D5MB` });
    const result = await db.write({ name: 'test/look', statements: [statement(serverSettings, {})] });
    expect(result.results[0]?.rows).toEqual([{ work_mem: '5MB', synchronous_commit: 'on', statement_timeout: '2s' }]);
  });

  test('refuses a database with an encoding other than UTF8', async () => {
    const name = `latin_${Date.now()}`;
    await beside((query) => query(`create database ${name} encoding 'LATIN1' template template0`));
    const latin = new URL(url);
    latin.pathname = `/${name}`;
    await expect(openAlone({ url: latin.href })).rejects.toThrow(/encoding LATIN1; create one with encoding UTF8/);
  });
});
