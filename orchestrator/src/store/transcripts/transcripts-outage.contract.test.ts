import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { databasesOn } from '../../../test/databases/postgres-databases.ts';
import { postgresProxy } from '../../../test/databases/postgres-proxy.ts';
import { transcriptsIn } from '../../../test/transcripts.ts';
import { rowTypes } from '../postgres/postgres-row-types.ts';
import { withFormerFiles } from './former-files.ts';
import { allTranscripts } from './transcript-rows.ts';
import type { Recording, Transcripts } from './transcripts.ts';

const id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const other = '01KAGZ7Q4W8E2R5T6Y9V0P3A1T';
const shared = inject('postgres');
const databases = 'missing' in shared ? null : databasesOn(shared.url);
const never = (reason: Error) => {
  throw reason;
};
const digestOf = (text: string) => ({ sha256: createHash('sha256').update(text).digest('hex'), bytes: text.length });
const recorded = (recording: Recording, lines: string) =>
  new Promise<void>((done) => recording.append(lines, () => done()));

const open: { close(): unknown }[] = [];
beforeAll(() => {
  if ('missing' in shared && process.env.CI === 'true') throw new Error(shared.missing);
});
beforeEach((context) => {
  if ('missing' in shared) context.skip(shared.missing);
});
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});
afterAll(async () => {
  await databases?.dropDatabases();
});

/** A database with a connection for SQL, and transcripts that reach it through a proxy. */
async function database(clock = new ManualClock()) {
  const url = await databases!.createDatabase('missing' in shared ? '' : shared.template);
  const proxy = await postgresProxy(url);
  open.push(proxy);
  const transcripts = transcriptsIn(proxy.url, { clock });
  open.push(transcripts);
  return { url, proxy, transcripts, clock, sql: await sqlOf(url) };
}

async function sqlOf(url: string) {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  open.push({ close: () => client.end() });
  return async (text: string) => (await client.query(text)).rows as Record<string, string>[];
}

/** Advances the clock in small steps until the promise is settled. */
async function advancing<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let settled = false;
  const done = () => {
    settled = true;
  };
  promise.then(done, done);
  while (!settled) {
    clock.advance(50);
    await pause(5);
  }
  return await promise;
}

type Sql = Awaited<ReturnType<typeof sqlOf>>;

/** Makes commits of new chunks, or of a completed transcript, wait for a lock that the test holds. */
async function holdCommits(url: string, sql: Sql, event: string) {
  const holder = await sqlOf(url);
  await sql(`create function wait() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(7); return null; end'`);
  await sql(`create constraint trigger waits after ${event} deferrable initially deferred
    for each row execute function wait()`);
  return {
    hold: () => holder('select pg_advisory_lock(7)'),
    release: () => holder('select pg_advisory_unlock(7)'),
  };
}

/** Selects the waits for locks in this database. Other tests use other databases of the same server. */
const lockWaits = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

const waiting = (sql: Sql, count = 1) => vi.waitFor(async () => expect(await sql(lockWaits)).toHaveLength(count));

test('resends rows that the server lost before the next flush checks the length of the transcript', async () => {
  const { sql, transcripts, clock, proxy } = await database();
  const recording = await transcripts.create(id, never);
  await recorded(recording, 'one\n');
  // A server crash closes all connections, and loses rows that are not durable.
  await sql('delete from terminal_chunks');
  proxy.cut();
  clock.advance(500);
  proxy.restore();
  await advancing(
    clock,
    vi.waitFor(async () => expect(await sql('select 1 from terminal_chunks')).toHaveLength(1)),
  );
  await advancing(
    clock,
    vi.waitFor(async () => expect(await sql('select bytes from terminal_transcripts')).toEqual([{ bytes: '4' }])),
  );
  expect(await advancing(clock, recording.finish())).toEqual(digestOf('one\n'));
});

test('flushes only transcripts whose rows have all been stored again', async () => {
  const { sql, transcripts, clock, proxy } = await database();
  const [large, small] = [await transcripts.create(id, never), await transcripts.create(other, never)];
  const line = `${'x'.repeat(200_000)}\n`;
  // More bytes than one insert may contain, but too few to trigger a flush.
  for (let n = 0; n < 35; n++) await recorded(large, line);
  await recorded(small, 'one\n');
  await sql('delete from terminal_chunks');
  proxy.cut();
  const finished = small.finish();
  await pause(20);
  proxy.restore();
  expect(await advancing(clock, finished)).toEqual(digestOf('one\n'));
  expect(await advancing(clock, large.finish())).toEqual(digestOf(line.repeat(35)));
});

test('finishes a recording while another recording is never idle', async () => {
  const { transcripts } = await database();
  const [recording, busy] = [await transcripts.create(id, never), await transcripts.create(other, never)];
  let left = 1_000;
  const again = () => {
    if (left-- > 0) busy.append('busy\n', again);
  };
  again();
  await recorded(recording, 'one\n');
  expect(await recording.finish()).toEqual(digestOf('one\n'));
  expect(left).toBeGreaterThan(0);
  left = 0;
  await busy.finish();
});

test('removes rows that were committed after their recording had failed', async () => {
  const { url, sql, transcripts, clock, proxy } = await database();
  const direct = transcriptsIn(url);
  open.push(direct);
  const commits = await holdCommits(url, sql, 'insert on terminal_chunks');
  const onFailure = vi.fn();
  const recording = await transcripts.create(id, onFailure);
  await recorded(recording, 'one\n');
  await commits.hold();
  const done = vi.fn();
  recording.append('two\n', done);
  await waiting(sql);
  proxy.cut();
  await commits.release();
  await vi.waitFor(async () => expect(await direct.digest(id)).toEqual(digestOf('one\ntwo\n')));
  await advancing(
    clock,
    vi.waitFor(() => expect(onFailure).toHaveBeenCalledOnce()),
  );
  const digest = await recording.finish();
  expect([digest, done.mock.calls.length]).toEqual([digestOf('one\n'), 0]);
  // The first attempts to remove the row fail.
  await pause(50);
  expect(await direct.digest(id)).toEqual(digestOf('one\ntwo\n'));
  proxy.restore();
  await advancing(
    clock,
    vi.waitFor(async () => expect(await direct.digest(id)).toEqual(digest)),
  );
  await vi.waitFor(async () =>
    expect(await sql('select writer, bytes, packed from terminal_transcripts')).toEqual([
      { writer: '', bytes: '4', packed: '1' },
    ]),
  );
});

test('finishes a recording if the connection is lost after its completion was committed', async () => {
  const { url, sql, transcripts, clock, proxy } = await database();
  const commits = await holdCommits(url, sql, 'update of writer on terminal_transcripts');
  const recording = await transcripts.create(id, never);
  await recorded(recording, 'one\n');
  await recorded(recording, 'two\n');
  await commits.hold();
  const finished = recording.finish();
  await waiting(sql);
  proxy.cut();
  await commits.release();
  await vi.waitFor(async () => expect(await sql('select writer from terminal_transcripts')).toEqual([{ writer: '' }]));
  proxy.restore();
  expect(await advancing(clock, finished)).toEqual(digestOf('one\ntwo\n'));
});

test('leaves no rows of a transcript that is removed while transcripts are compressed', async () => {
  const { url, sql, transcripts } = await database();
  const packing = transcriptsIn(url);
  open.push(packing);
  await sql(`insert into terminal_transcripts values ('${id}', '', 8, 0)`);
  await sql(`insert into terminal_chunks values ('${id}', 0, 4, 0, 'one\n'), ('${id}', 4, 4, 0, 'two\n')`);
  const holder = await sqlOf(url);
  await holder('begin; select 1 from terminal_chunks for update');
  const removed = transcripts.remove(id);
  await waiting(sql);
  const packed = packing.pack();
  await Promise.race([packed, pause(500)]);
  await holder('commit');
  await Promise.all([removed, packed]);
  expect([await sql('select 1 from terminal_transcripts'), await sql('select 1 from terminal_chunks')]).toEqual([
    [],
    [],
  ]);
});

test('records other transcripts while one transcript’s row is locked, and records the locked transcript afterward', async () => {
  const { url, sql, transcripts, clock } = await database();
  const [held, free] = [await transcripts.create(id, never), await transcripts.create(other, never)];
  await Promise.all([recorded(held, 'one\n'), recorded(free, 'one\n')]);
  const holder = await sqlOf(url);
  await holder(`begin; select 1 from terminal_transcripts where session_id = '${id}' for update`);
  const done = vi.fn();
  held.append('two\n', done);
  await recorded(free, 'two\n');
  expect(await advancing(clock, free.finish())).toEqual(digestOf('one\ntwo\n'));
  expect(done).not.toHaveBeenCalled();
  expect(await sql(lockWaits)).toEqual([]);
  await holder('commit');
  await advancing(
    clock,
    vi.waitFor(() => expect(done).toHaveBeenCalledOnce()),
  );
  expect(await advancing(clock, held.finish())).toEqual(digestOf('one\ntwo\n'));
});

test('fails a recording whose row remains locked against flushes, even if chunks can be stored', async () => {
  const { url, transcripts, clock } = await database();
  const failed = vi.fn();
  const recording = await transcripts.create(id, failed);
  const holder = await sqlOf(url);
  await holder(`begin; select 1 from terminal_transcripts where session_id = '${id}' for share`);
  for (let second = 0; second < 60 && failed.mock.calls.length === 0; second++) {
    recording.append('line\n', () => undefined);
    for (let step = 0; step < 4; step++) {
      clock.advance(250);
      await pause(20);
    }
  }
  expect(failed).toHaveBeenCalledOnce();
});

test('stores and flushes other transcripts after the connection is lost during a query about a locked transcript', async () => {
  const { url, proxy, transcripts, clock, sql } = await database();
  const [held, free] = [await transcripts.create(id, never), await transcripts.create(other, never)];
  await Promise.all([recorded(held, 'one\n'), recorded(free, 'one\n')]);
  // After a flush, no timer starts the next attempt.
  clock.advance(500);
  await vi.waitFor(() => expect(transcripts.syncs).toBe(1));
  const holder = await sqlOf(url);
  await holder(`begin; select 1 from terminal_transcripts where session_id = '${id}' for update`);
  proxy.cutAt('select bytes, writer');
  held.append('two\n', () => undefined);
  const done = recorded(free, 'two\n');
  await vi.waitFor(async () =>
    expect(await sql(`select 1 from terminal_chunks where session_id = '${other}'`)).toHaveLength(2),
  );
  await pause(50);
  proxy.restore();
  await advancing(clock, done);
  await holder('commit');
  for (const one of [free, held]) expect(await advancing(clock, one.finish())).toEqual(digestOf('one\ntwo\n'));
});

test('leaves connections for readers while several transcripts are removed', async () => {
  const { url, sql, transcripts } = await database();
  const ids = [1, 2, 3, 4].map((n) => `${id.slice(0, -1)}${n}`);
  for (const one of ids) await sql(`insert into terminal_transcripts values ('${one}', '', 0, 1)`);
  const holder = await sqlOf(url);
  await holder('begin; select 1 from terminal_transcripts for update');
  const onRemoved = vi.fn();
  const removed = ids.map((one) => transcripts.remove(one).finally(onRemoved));
  await waiting(sql);
  await pause(50);
  const onRead = vi.fn();
  void transcripts.has(id).then(onRead);
  await vi.waitFor(() => expect(onRead).toHaveBeenCalledWith(false));
  expect(onRemoved).not.toHaveBeenCalled();
  await holder('commit');
  await Promise.all(removed);
});

test('reads the bytes after a removed row, and counts only stored bytes', async () => {
  const { url, sql, transcripts } = await database();
  // A query returns no further rows after a row of this size.
  const size = 1024 * 1024;
  await sql(`insert into terminal_transcripts values ('${id}', '', ${size + 8}, 1)`);
  await sql(`insert into terminal_chunks values ('${id}', 0, ${size}, 0, repeat('x', ${size})::bytea),
    ('${id}', ${size + 4}, 4, 0, 'two\n')`);
  expect(await transcripts.digest(id)).toEqual(digestOf(`${'x'.repeat(size)}two\n`));
  expect(String(Buffer.from(await transcripts.part(id, size + 1, size + 8)))).toBe('two\n');
  const client = new Client({ connectionString: url, types: rowTypes });
  await client.connect();
  open.push({ close: () => client.end() });
  for await (const one of allTranscripts(client)) expect((await buffer(one.content)).length).toBe(one.size);
});

test('stores a moved transcript durably, with any connection settings', async () => {
  const { url, sql } = await database();
  await sql('create table levels (level text)');
  await sql(`create function note() returns trigger language plpgsql as
    $$begin insert into levels values (current_setting('synchronous_commit')); return null; end$$`);
  await sql('create trigger notes after insert on terminal_chunks for each row execute function note()');
  const transcripts = transcriptsIn(`${url}?options=-c%20synchronous_commit%3Doff`);
  open.push(transcripts);
  await transcripts.store(id, Readable.from([Buffer.from('one\n')]));
  expect(await sql('select level from levels')).toEqual([{ level: 'on' }]);
});

test('stops moving a transcript when it is closed', async () => {
  const { url } = await database();
  const transcripts = transcriptsIn(url);
  const started = Promise.withResolvers<void>();
  const files = {
    ...({} as Transcripts),
    ids: async () => [id],
    repair: async () => undefined,
    close: async () => undefined,
    cast: async () =>
      (async function* () {
        for (;;) {
          started.resolve();
          yield Buffer.from('one\n');
          await pause(5);
        }
      })(),
  };
  const both = withFormerFiles(transcripts, files, { info: () => undefined, warn: never });
  await started.promise;
  const onClosed = vi.fn();
  void both.close().then(onClosed);
  await vi.waitFor(() => expect(onClosed).toHaveBeenCalledOnce());
});

test('finishes the last recording even if the server does not close the connection', async () => {
  const { transcripts, clock, proxy } = await database();
  const recording = await transcripts.create(id, never);
  await recorded(recording, 'one\n');
  proxy.ignoreEnd();
  const onFinished = vi.fn();
  void advancing(clock, recording.finish()).then(onFinished);
  await vi.waitFor(() => expect(onFinished).toHaveBeenCalledWith(digestOf('one\n')));
});
