import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/protocol';
import Connection from 'better-sqlite3';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { missingMount } from '../../../test/databases/small-file-system.ts';
import { sampleAt } from '../../../test/samples.ts';
import { scratchDirectory } from '../../../test/scratch.ts';
import { type Database, OutcomeUnknown } from '../database.ts';
import { defineQuery } from '../query.ts';
import { openSqliteSamples } from '../samples/samples-sqlite.ts';
import { statement } from '../transaction.ts';
import { openSqlite, type SqliteOptions } from './sqlite.ts';

const put = defineQuery('settings/put', (db, p: { key: string; value: string }) =>
  db.insertInto('settings').values({ key: p.key, value: p.value }),
);
const everything = defineQuery('settings/all', (db) => db.selectFrom('settings').selectAll().orderBy('key'));
const byKey = defineQuery('settings/by key', (db, p: { key: string }) =>
  db.selectFrom('settings').selectAll().where('key', '=', p.key),
);

let directory = '';
let database: Database | undefined;
const fatal: Error[] = [];

beforeEach(() => {
  directory = scratchDirectory('muster-sqlite-');
  fatal.length = 0;
});
afterEach(async () => {
  await database?.close();
  rmSync(directory, { recursive: true, force: true });
});

async function open(options: Partial<SqliteOptions> = {}): Promise<Database> {
  database = await openSqlite({
    file: join(directory, 'muster.db'),
    now: () => 1,
    onFatal: (reason) => fatal.push(reason),
    ...options,
  });
  return database;
}

const write = (to: Database, key: string, value = '') =>
  to.write({ name: 'settings/put', statements: [statement(put, { key, value })] });

describe('changes by other processes', () => {
  test('detects a write by another process between a commit by this process and the delivery of the commit’s result', async () => {
    const db = await open();
    const shell = new Connection(join(directory, 'muster.db'));
    const committed = shell.prepare("select 1 from settings where key = 'second'");
    await write(db, 'first');
    const before = db.outsideChanges();
    const answered = write(db, 'second');
    await new Promise((sent) => setImmediate(sent));
    // The result cannot arrive, because this thread does not return to its event loop.
    while (committed.get() === undefined);
    shell.prepare("insert into settings (key, value) values ('by the shell', '')").run();
    await answered;
    await expect.poll(() => db.outsideChanges()).toBeGreaterThan(before);
    shell.close();
  });
});

describe('the writer', () => {
  test('commits queued writes together, up to the maximum number', async () => {
    // Increases the default of 20 ms, because a group may take longer on a busy machine.
    const db = await open({ maxGroupMs: 600_000 });
    await Promise.all(Array.from({ length: 200 }, (_, n) => write(db, `k${n}`)));
    expect(db.stats()).toMatchObject({ unitsCommitted: 200, commits: 1 });
    await db.close();
    const bounded = await open({ maxGroupUnits: 10, maxGroupMs: 600_000 });
    await Promise.all(Array.from({ length: 35 }, (_, n) => write(bounded, `b${n}`)));
    expect(bounded.stats()).toMatchObject({ unitsCommitted: 35, commits: 4 });
  });

  test('commits writes in the order in which they were submitted', async () => {
    const db = await open({ maxGroupUnits: 7 });
    const order: number[] = [];
    const count = defineQuery('settings/count', (builder, p: { key: string }) =>
      builder
        .insertInto('settings')
        .columns(['key', 'value'])
        .expression((eb) =>
          eb.selectFrom('settings').select([sql<string>`${p.key}`.as('key'), sql<string>`count(*)`.as('value')]),
        )
        .returning('value'),
    );
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const counting = statement(count, { key: `k${n}` });
        const result = await db.write({ name: 'settings/count', statements: [counting] });
        expect(Number(result.of(counting).rows[0]!.value)).toBe(n);
        order.push(n);
      }),
    );
    expect(order).toEqual(Array.from({ length: 50 }, (_, n) => n));
  });

  test('reads the database without waiting for a commit', async () => {
    const db = await open({ commitDelayMs: 150 });
    const events: string[] = [];
    const writing = write(db, 'k').then(() => events.push('written'));
    // The read starts after the writer has received the write.
    await new Promise((resolve) => setImmediate(resolve));
    expect(await db.get(byKey, { key: 'k' })).toBeUndefined();
    events.push('read');
    await writing;
    expect(events).toEqual(['read', 'written']);
    expect(await db.get(byKey, { key: 'k' })).toEqual({ key: 'k', value: '' });
  });

  test('keeps the write-ahead log small, and checkpoints it on close', async () => {
    const db = await open();
    const value = 'x'.repeat(20_000);
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 500 }, (_, n) => write(db, `${round}-${n}`, value)));
    // Writes 100 MB to the log.
    expect(statSync(join(directory, 'muster.db-wal')).size).toBeLessThan(64 * 1024 * 1024);
    await db.close();
    expect(readdirSync(directory)).toEqual(['muster.db']);
    expect(await (await open()).all(everything, {})).toHaveLength(5000);
  });

  test('calls onFatal when the writer throws', async () => {
    const real = new URL('./sqlite-writer.ts', import.meta.url).href;
    const broken = join(directory, 'broken-writer.mjs');
    await write(await open(), 'fine');
    await database?.close();
    // Wraps the real writer to make it throw when the first write arrives.
    writeFileSync(
      broken,
      `import { parentPort } from 'node:worker_threads';
       const on = parentPort.on.bind(parentPort);
       parentPort.on = (event, listener) => on(event, (message) => {
         if (message.kind === 'units') throw new Error('the thread broke');
         listener(message);
       });
       await import(${JSON.stringify(real)});`,
    );
    const db = await open({ writer: new URL(`file://${broken}`) });
    await expect(write(db, 'lost')).rejects.toThrow(OutcomeUnknown);
    expect(fatal.map((error) => error.message)).toEqual(['the thread broke']);
    await expect(write(db, 'later')).rejects.toMatchObject({ code: 'storage_unavailable' });
    expect(await db.get(byKey, { key: 'fine' })).toBeDefined();
  });

  test('calls onFatal when the writer exits without an error', async () => {
    const real = new URL('./sqlite-writer.ts', import.meta.url).href;
    const broken = join(directory, 'ending-writer.mjs');
    writeFileSync(
      broken,
      `import { parentPort } from 'node:worker_threads';
       parentPort.on('message', () => process.exit(3));
       await import(${JSON.stringify(real)});`,
    );
    const db = await open({ writer: new URL(`file://${broken}`) });
    await expect(write(db, 'k')).rejects.toThrow(OutcomeUnknown);
    expect(fatal[0]?.message).toBe('The database writer ended with code 3');
  });
});

describe('a full disk', () => {
  test('refuses a write on a full disk without damage, and recovers', async (context) => {
    if (missingMount && process.env.CI !== 'true') context.skip(missingMount);
    const small = join(directory, 'small');
    mkdirSync(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', small]);
    try {
      const db = await open({ file: join(small, 'muster.db') });
      await write(db, 'first', 'x'.repeat(100_000));
      writeFileSync(join(small, 'ballast'), Buffer.alloc(1_200_000));
      const codes: string[] = [];
      const stored = ['first'];
      // A group contains large and small writes. The small writes succeed even though the large writes fail.
      await Promise.all(
        Array.from({ length: 40 }, async (_, n) => {
          const key = `k${String(n).padStart(2, '0')}`;
          try {
            await db.write({
              name: 'settings/pair',
              statements: [
                statement(put, { key, value: 'x'.repeat(n % 2 === 0 ? 200_000 : 10) }),
                statement(put, { key: `${key}-twin`, value: '' }),
              ],
            });
            stored.push(key, `${key}-twin`);
          } catch (error) {
            codes.push(error instanceof MusterError ? error.code : String(error));
          }
        }),
      );
      expect(codes.length).toBeGreaterThan(10);
      expect(new Set(codes)).toEqual(new Set(['storage_full']));
      expect(stored.length).toBeGreaterThan(20);
      expect((await db.all(everything, {})).map((row) => row.key)).toEqual(stored.sort());
      rmSync(join(small, 'ballast'));
      await write(db, 'later', 'x'.repeat(10_000));
      expect(fatal).toEqual([]);
      await db.close();
      const again = await open({ file: join(small, 'muster.db') });
      expect((await again.all(everything, {})).map((row) => row.key)).toEqual([...stored, 'later'].sort());
      await again.close();
    } finally {
      // An open file would prevent the unmount.
      await database?.close();
      execFileSync('umount', [small]);
    }
  });

  test('refuses samples on a full disk without losing stored samples, and recovers', async (context) => {
    if (missingMount && process.env.CI !== 'true') context.skip(missingMount);
    const small = join(directory, 'small-samples');
    mkdirSync(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', small]);
    const lost: Error[] = [];
    const store = await openSqliteSamples({
      file: join(small, 'metrics.db'),
      retentionSecs: 86_400,
      onFatal: (reason) => lost.push(reason),
    });
    try {
      writeFileSync(join(small, 'ballast'), Buffer.alloc(1_500_000));
      const codes: string[] = [];
      const stored: number[] = [];
      for (let at = 1_800_000_000; codes.length < 2; at += 2000)
        await store
          .add(
            'a',
            Array.from({ length: 2000 }, (_, n) => sampleAt(at + n, { memory_total: 2 ** 45 + n })),
          )
          .then(
            () => stored.push(at),
            (error: { code?: string }) => codes.push(String(error.code)),
          );
      expect(codes).toEqual(['storage_full', 'storage_full']);
      expect(stored.length).toBeGreaterThan(0);
      expect(await store.since('a', 0, 1_000_000)).toHaveLength(2000 * stored.length);
      rmSync(join(small, 'ballast'));
      await store.add('b', [sampleAt(1_800_000_000)]);
      expect(await store.since('b', 0, 9)).toEqual([sampleAt(1_800_000_000)]);
      expect(lost).toEqual([]);
    } finally {
      await store.close();
      execFileSync('umount', [small]);
    }
  });
});
