import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { databasesOn } from '../../../test/databases/postgres-databases.ts';
import { type PostgresServer, startPostgres } from '../../../test/databases/postgres-server.ts';
import { inThisDatabase } from '../../../test/databases/this-database.ts';
import { scratchDirectory } from '../../../test/scratch.ts';
import { transcriptsIn } from '../../../test/transcripts.ts';
import { outputLines } from '../cast.ts';
import { openPostgres } from '../postgres/postgres.ts';
import { withFormerFiles } from './former-files.ts';
import type { Recording } from './transcripts.ts';
import { openFileTranscripts } from './transcripts-files.ts';
import type { PostgresTranscripts } from './transcripts-postgres.ts';

const id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const recorder = fileURLToPath(new URL('../../../test/record-until-killed.ts', import.meta.url));
const shared = inject('postgres');
const databases = 'missing' in shared ? null : databasesOn(shared.url);
const root = scratchDirectory('muster-former-');
const never = (reason: Error) => {
  throw reason;
};
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const recorded = (recording: Recording, lines: string) =>
  new Promise<void>((done) => recording.append(lines, () => done()));
const silent = { info: () => {}, warn: () => {} };

const open: (PostgresTranscripts | Client)[] = [];
beforeAll(() => {
  if ('missing' in shared && process.env.CI === 'true') throw new Error(shared.missing);
});
beforeEach((context) => {
  if ('missing' in shared) context.skip(shared.missing);
});
afterEach(async () => {
  for (const one of open.splice(0)) await ('close' in one ? one.close() : one.end());
});
afterAll(async () => {
  await databases?.dropDatabases();
  rmSync(root, { recursive: true, force: true });
});

const newDatabase = () => databases!.createDatabase('missing' in shared ? '' : shared.template);
const transcriptsOf = (url: string, options: Parameters<typeof transcriptsIn>[1] = {}) => {
  const transcripts = transcriptsIn(url, options);
  open.push(transcripts);
  return transcripts;
};
async function sqlOf(url: string) {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  open.push(client);
  return async (text: string) => (await client.query(text)).rows as Record<string, string>[];
}

test('refuses lines from a process after another process has completed its transcript', async () => {
  const url = await newDatabase();
  const [old, next] = [transcriptsOf(url, { incarnation: 'old' }), transcriptsOf(url, { incarnation: 'next' })];
  const onFailure = vi.fn();
  const recording = await old.create(id, onFailure);
  const shown = outputLines(1, Buffer.from('shown'));
  await recorded(recording, shown);
  // Only another process can complete the transcript of a live recording.
  await old.repair(id);
  await recorded(recording, shown);
  await next.repair(id);
  const digest = await next.digest(id);
  const done = vi.fn();
  recording.append(outputLines(2, Buffer.from('late')), done);
  await vi.waitFor(() => expect(onFailure).toHaveBeenCalledOnce());
  expect(onFailure.mock.calls[0]?.[0]).toMatchObject({ message: 'another process has taken over the transcript' });
  expect(done).not.toHaveBeenCalled();
  expect(await recording.finish()).toEqual(digest);
  expect(await next.digest(id)).toEqual(digest);
  expect(digest).toEqual({ sha256: sha256(Buffer.from(shown + shown)), bytes: 2 * shown.length });
});

test('completes a transcript only after the commit of a pending row', async () => {
  const url = await newDatabase();
  const [old, next] = [transcriptsOf(url, { incarnation: 'old' }), transcriptsOf(url, { incarnation: 'next' })];
  const [sql, holder] = [await sqlOf(url), await sqlOf(url)];
  // Makes each commit of a row wait for a lock that the test holds.
  await sql(`create function wait() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(7); return null; end'`);
  await sql(`create constraint trigger waits after insert on terminal_chunks deferrable initially deferred
    for each row execute function wait()`);
  await holder('select pg_advisory_lock(7)');
  const recording = await old.create(id, () => {});
  const shown = outputLines(1, Buffer.from('shown'));
  const done = recorded(recording, shown);
  const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted and ${inThisDatabase}`;
  await vi.waitFor(async () => expect(await sql(waiting)).toHaveLength(1));
  const completed = vi.fn();
  const repaired = next.repair(id).then(completed);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(completed).not.toHaveBeenCalled();
  await holder('select pg_advisory_unlock(7)');
  await Promise.all([done, repaired]);
  expect(await next.digest(id)).toEqual({ sha256: sha256(Buffer.from(shown)), bytes: shown.length });
  await recording.finish();
});

test('detects removed rows at the next flush', async () => {
  const url = await newDatabase();
  const sql = await sqlOf(url);
  for (const [n, harm, message] of [
    [1, 'delete from terminal_transcripts', 'the rows of the transcript were removed'],
    [2, 'delete from terminal_chunks', 'rows of the transcript were removed'],
  ] as const) {
    const clock = new ManualClock();
    const transcripts = transcriptsOf(url, { clock });
    const onFailure = vi.fn();
    const recording = await transcripts.create(`${id.slice(0, -1)}${n}`, onFailure);
    await recorded(recording, '{}\n');
    await sql(harm);
    clock.advance(500);
    await vi.waitFor(() => expect(onFailure).toHaveBeenCalledOnce());
    expect(onFailure.mock.calls[0]?.[0]).toMatchObject({ message });
    await recording.finish();
  }
});

test('compresses a finished transcript without changing its content, even while it is being read', async () => {
  const url = await newDatabase();
  const sql = await sqlOf(url);
  const transcripts = transcriptsOf(url);
  const recording = await transcripts.create(id, never);
  let text = '';
  for (let n = 0; n < 300; n++) {
    const line = outputLines(n, Buffer.from(`${n} `.repeat(4000)));
    text += line;
    await recorded(recording, line);
  }
  const content = (await transcripts.cast(id))![Symbol.asyncIterator]();
  const first = (await content.next()).value as Uint8Array;
  const digest = await recording.finish();
  await transcripts.pack();
  expect((await sql('select packed, count(*) from terminal_chunks group by 1')).map(({ packed }) => packed)).toEqual([
    '1',
  ]);
  const rest: Uint8Array[] = [first];
  for (let next = await content.next(); !next.done; next = await content.next()) rest.push(next.value);
  expect(Buffer.concat(rest).equals(Buffer.from(text))).toBe(true);
  expect(await transcripts.digest(id)).toEqual(digest);
  const [row] = await sql(
    'select count(*) as rows, sum(size) as size, sum(octet_length(bytes)) as bytes from terminal_chunks',
  );
  expect([Number(row?.rows), Number(row?.size)]).toEqual([expect.any(Number), digest.bytes]);
  expect(Number(row?.rows)).toBeLessThan(10);
  expect(Number(row?.bytes)).toBeLessThan(digest.bytes / 20);
  for (const from of [0, 1_000_000, 1_048_570, 3_000_001]) {
    const part = await transcripts.part(id, from, from + 50_000);
    expect(String(Buffer.from(part))).toBe(text.slice(from, from + 50_000));
  }
  await transcripts.remove(id);
  expect(await sql('select 1 from terminal_chunks')).toEqual([]);
});

test('records all output that was shown before the process was killed', async () => {
  const url = await newDatabase();
  const child = spawn(process.execPath, [recorder, url, id], { stdio: ['ignore', 'pipe', 'inherit'] });
  const shown: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    shown.push(line);
    if (shown.length === 400) child.kill('SIGKILL');
  }
  if (child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  const transcripts = transcriptsOf(url);
  await transcripts.repair(id);
  const raw = await buffer((await transcripts.raw(id))!);
  const [length, hash] = (shown.at(-1) as string).split(' ');
  expect(raw.length).toBeGreaterThanOrEqual(Number(length));
  expect(sha256(raw.subarray(0, Number(length)))).toBe(hash);
});

test('stores the last rows again after the server is killed, and continues to record', async () => {
  const server: PostgresServer = await startPostgres();
  try {
    const url = await server.createDatabase();
    await (await openPostgres({ url, now: () => 1 })).close();
    const transcripts = transcriptsIn(url, { clock: systemClock });
    const recording = await transcripts.create(id, never);
    let text = '';
    const add = (n: number) => {
      const line = outputLines(n, Buffer.from(`line ${n}`));
      text += line;
      return recorded(recording, line);
    };
    for (let n = 0; n < 200; n++) await add(n);
    await server.kill();
    const during = add(200);
    await server.start();
    await during;
    for (let n = 201; n < 300; n++) await add(n);
    const digest = await recording.finish();
    expect(digest).toEqual({ sha256: sha256(Buffer.from(text)), bytes: Buffer.byteLength(text) });
    expect(await transcripts.digest(id)).toEqual(digest);
    await transcripts.close();
  } finally {
    await server.stop();
  }
});

test('fails recordings after the server has been unavailable for 30 seconds, and keeps the confirmed lines', async () => {
  const url = await newDatabase();
  const clock = new ManualClock();
  const transcripts = transcriptsOf(url, { clock });
  const onFailure = vi.fn();
  const recording = await transcripts.create(id, onFailure);
  await recorded(recording, 'one\n');
  const name = new URL(url).pathname.slice(1);
  const other = await sqlOf('missing' in shared ? '' : shared.url);
  await other(`alter database ${name} allow_connections false`);
  await other(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  const done = vi.fn();
  recording.append('two\n', done);
  for (let waited = 0; waited < 40_000 && onFailure.mock.calls.length === 0; waited += 1_000) {
    await vi.waitFor(() => expect(clock.next !== null || onFailure.mock.calls.length > 0).toBe(true));
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(onFailure.mock.calls.length === 0 || waited >= 30_000).toBe(true);
    clock.advance(1_000);
  }
  expect(onFailure).toHaveBeenCalledOnce();
  expect(done).not.toHaveBeenCalled();
  expect((await recording.finish()).bytes).toBe(4);
  await other(`alter database ${name} allow_connections true`);
  expect(String(await buffer((await transcripts.cast(id))!))).toBe('one\n');
});

test('closes the transcripts without waiting for a server that is unavailable', async () => {
  const url = await newDatabase();
  const transcripts = transcriptsIn(url, { clock: new ManualClock() });
  const onFailure = vi.fn();
  const recording = await transcripts.create(id, onFailure);
  await recorded(recording, 'one\n');
  const name = new URL(url).pathname.slice(1);
  const other = await sqlOf('missing' in shared ? '' : shared.url);
  await other(`alter database ${name} allow_connections false`);
  await other(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  recording.append('two\n');
  await transcripts.close();
  expect(onFailure).toHaveBeenCalledOnce();
});

test('moves transcripts in files into the database, and reads the files until they are moved', async () => {
  const url = await newDatabase();
  const directory = join(root, 'terminals');
  mkdirSync(directory, { mode: 0o700 });
  const line = outputLines(1, Buffer.from('shown'));
  const ids = [1, 2, 3].map((n) => `${id.slice(0, -1)}${n}`);
  for (const one of ids) writeFileSync(join(directory, `${one}.cast`), `{}\n${line}[2,"o","not sh`, { mode: 0o600 });
  const rows = transcriptsOf(url);
  const [first = '', second = '', third = ''] = ids;
  // A startup that is killed after it has stored the rows leaves the file behind.
  await rows.store(
    second,
    (async function* () {
      yield Buffer.from(`{}\n${line}`);
    })(),
  );
  // A transcript that differs from the rows is kept.
  await rows.store(
    third,
    (async function* () {
      yield Buffer.from('{}\nother\n');
    })(),
  );
  const files = await openFileTranscripts(directory, new ManualClock());
  const gate = Promise.withResolvers<void>();
  const slow = { ...files, repair: (one: string) => gate.promise.then(() => files.repair(one)) };
  const both = withFormerFiles(rows, slow, silent);
  expect([await both.has(first), await rows.has(first)]).toEqual([true, false]);
  expect(String(await buffer((await both.raw(first))!))).toBe('shown');
  expect(await both.ids({ after: '', below: '~', limit: 9 })).toEqual(ids);
  gate.resolve();
  await vi.waitFor(() => expect(readdirSync(directory)).toEqual([`${third}.cast`]));
  expect(String(await buffer((await rows.cast(first))!))).toBe(`{}\n${line}`);
  expect(await both.digest(first)).toEqual(await rows.digest(first));
  await both.remove(third);
  expect([existsSync(join(directory, `${third}.cast`)), await both.has(third)]).toEqual([false, false]);
});
