import {
  createReadStream,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { liveBytes } from '../../../../lib/test/live-memory.ts';
import { sampled } from '../../../../lib/test/sampled.ts';
import { testTime } from '../../../test/databases/databases.ts';
import { databasesOn } from '../../../test/databases/postgres-databases.ts';
import { scratchDirectory } from '../../../test/scratch.ts';
import { transcriptsIn } from '../../../test/transcripts.ts';
import { migrations } from '../migrations/index.ts';
import { openPostgres } from '../postgres/postgres.ts';
import { connect, connectionSettings } from '../postgres/postgres-settings.ts';
import { openSqlite } from '../sqlite/sqlite.ts';
import { exportDatabase, importDatabase, type TransferReport } from './transfer.ts';
import { postgresSource, postgresTarget } from './transfer-postgres.ts';
import { sqliteSource, sqliteTarget } from './transfer-sqlite.ts';
import {
  TransferRefused,
  type TransferRow,
  type TransferSource,
  type TransferTable,
  type TransferTarget,
} from './transfer-table.ts';
import { transcriptTables } from './transfer-transcripts.ts';

const now = () => testTime;
/** Number of broken exports that `npm test` tries, selected at random. `npm run soak -- kill-steps` tries all. */
const brokenTried = 5;
const about = { musterVersion: '0.0.0-test', now: new Date(testTime * 1000) };

/** Text with quotes, line endings, characters beyond the BMP, JSON, and SQL. */
const edgeCases = [
  '',
  "it's",
  '"',
  '\\',
  '\n\r\t',
  'é',
  '日本',
  '😀',
  '{"a":1}',
  '$1',
  '\u2028',
  '\u{10ffff}',
  'x'.repeat(3000),
];

/**
 * Creates valid rows for a table. Keys are unique. In child rows, the column that references the parent has the same
 * name as the parent's key.
 */
function rowsFor(table: TransferTable, count: number, all: readonly TransferTable[]): TransferRow[] {
  const shared = (name: string) =>
    all.filter(({ columns }) => columns.some((column) => column.name === name)).length > 1;
  return Array.from({ length: count }, (_, row) =>
    table.columns.map(({ name, type }, column): string | number => {
      const plain = shared(name) || table.key.includes(name);
      if (type === 'integer') return plain ? row + 1 : row % 2 === 0 ? -row : Number.MAX_SAFE_INTEGER - row;
      if (type === 'number') return row / 3;
      if (type === 'bytes') return Buffer.from([row, 0, 255]).toString('base64');
      return plain ? keyOf(name, row) : `${row}.${column} ${edgeCases[(row + column) % edgeCases.length]}`;
    }),
  );
}
const keyOf = (name: string, row: number) => `${name}-${row} ${edgeCases[row % edgeCases.length]}`;

async function fill(target: TransferTarget, count = 40): Promise<void> {
  await target.begin(migrations.length);
  const tables = await target.tables();
  for (const table of tables) {
    // Rows of these tables must form valid transcripts; a separate test covers them.
    if (transcriptTables.has(table.name)) continue;
    await target.insert(table, rowsFor(table, count, tables));
    // Simulates deleted rows, whose counter values must not be reused.
    if (table.counter !== null) await target.setCounted(table, count + 7);
  }
  await target.commit();
  await target.close();
}

async function exported(source: TransferSource): Promise<{ text: string; report: TransferReport }> {
  const parts: string[] = [];
  try {
    const report = await exportDatabase(source, async (text) => void parts.push(text), about);
    return { text: parts.join(''), report };
  } finally {
    await source.close();
  }
}

async function imported(text: string | Buffer, target: TransferTarget): Promise<TransferReport> {
  const bytes = Buffer.from(text);
  async function* pieces() {
    // Splits the text into chunks of arbitrary length, as a pipe does.
    for (let at = 0; at < bytes.length; at += 777) yield bytes.subarray(at, at + 777);
  }
  try {
    return await importDatabase(pieces(), target);
  } finally {
    await target.close();
  }
}

describe('a transfer between databases', () => {
  let directory = '';
  const shared = inject('postgres');
  const missing = 'missing' in shared ? shared.missing : null;
  const server = 'missing' in shared ? null : databasesOn(shared.url);
  let count = 0;
  const file = () => join(directory, `database-${++count}.db`);

  beforeAll(() => {
    directory = scratchDirectory('muster-transfer-');
    if (missing && process.env.CI === 'true') throw new Error(missing);
  });
  afterAll(async () => {
    await server?.dropDatabases();
    rmSync(directory, { recursive: true, force: true });
  });

  const databases = {
    sqlite: {
      place: async () => file(),
      source: async (address: string) => sqliteSource(address),
      target: async (address: string) => sqliteTarget(address, now),
      open: (address: string) =>
        openSqlite({
          file: address,
          now,
          onFatal: (reason) => {
            throw reason;
          },
        }),
      tables: async (address: string) => {
        const db = new Sqlite(address);
        const found = db
          .prepare<[], { name: string }>(
            `select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`,
          )
          .all();
        db.close();
        return found.map(({ name }) => name);
      },
    },
    postgres: {
      place: () => server!.createDatabase(),
      source: (address: string) => postgresSource(address, 'db', 'test'),
      target: (address: string) => postgresTarget(address, 'db', 'test', now),
      open: (address: string) => openPostgres({ url: address, now }),
      tables: async (address: string) => {
        const client = await connect(connectionSettings({ url: address }));
        const found = await client.query<{ name: string }>(
          `select table_name as name from information_schema.tables where table_schema = 'public'`,
        );
        await client.end();
        return found.rows.map(({ name }) => name);
      },
    },
  };

  for (const from of ['sqlite', 'postgres'] as const)
    for (const to of ['sqlite', 'postgres'] as const)
      test(`moves all rows, tables, and counters from ${from} to ${to} and back`, async (context) => {
        if (missing && (from === 'postgres' || to === 'postgres')) context.skip(missing);
        const first = await databases[from].place();
        await fill(await databases[from].target(first));
        const one = await exported(await databases[from].source(first));
        const second = await databases[to].place();
        const report = await imported(one.text, await databases[to].target(second));
        expect(report).toEqual(one.report);
        const two = await exported(await databases[to].source(second));
        expect(two.text).toBe(one.text);

        // Covers every table except samples, including tables that later migrations add.
        const tables = (await databases[from].tables(first))
          .filter((name) => name !== 'schema_version' && !/^samples/.test(name) && !transcriptTables.has(name))
          .sort();
        expect(report.tables.map(({ table }) => table).sort()).toEqual(tables);
        for (const { table, rows } of report.tables) expect([table, rows]).toEqual([table, 40]);

        // An orchestrator can open the database, and its counters continue.
        const db = await databases[to].open(second);
        await db.close();
        expect(one.text).toContain('"end":"audit_events","rows":40,"counted":47');
      });

  describe.each(['sqlite', 'postgres'] as const)('into %s', (to) => {
    let text = '';
    beforeEach(async (context) => {
      if (missing && to === 'postgres') context.skip(missing);
      if (text !== '') return;
      const source = file();
      await fill(sqliteTarget(source, now), 3);
      ({ text } = await exported(sqliteSource(source)));
    });

    const lines = () => text.split('\n').slice(0, -1);
    const joined = (parts: string[]) => parts.map((line) => `${line}\n`).join('');
    const broken: [string, () => string | Buffer, RegExp][] = [
      ['is truncated between lines', () => joined(lines().slice(0, 30)), /without its trailer: it is truncated/],
      ['lacks only its trailer', () => joined(lines().slice(0, -1)), /truncated/],
      ['is truncated within a line', () => text.slice(0, text.length / 2), /truncated/],
      ['lacks only the last end of line', () => text.slice(0, -1), /truncated/],
      ['lacks a row', () => joined(lines().toSpliced(3, 1)), /differ from the exported/],
      [
        'has a row twice',
        () => joined(lines().toSpliced(3, 0, lines()[3] as string)),
        /differ from the exported|unique/i,
      ],
      [
        'has a value changed',
        () => text.replace('0.0 ', '9.9 ').replace('node_id-1 ', 'node_id-9 '),
        /differ from|parent|foreign/,
      ],
      ['lacks a table', () => withoutTable('settings'), /digest or its counts do not match|lacks tables/],
      ['has more after its end', () => `${text}{"table":"settings"}\n`, /after the end/],
      ['is empty', () => '', /truncated/],
      ['is something else', () => 'PGDMP\u0001\u000e\n', /not a Muster export/],
      ['is a JSON document', () => '{"a":1}\n', /not a Muster export/],
      ['has another form', () => text.replace('"muster_export":1', '"muster_export":2'), /reads version 1/],
      [
        'is of a newer schema',
        () => text.replace(`"schema_version":${migrations.length}`, '"schema_version":999'),
        /use a release that supports version 999/,
      ],
      [
        'is not UTF-8',
        () => Buffer.concat([Buffer.from(lines()[0] as string), Buffer.from([0x0a, 0xff, 0x0a])]),
        /line 2 cannot be parsed/,
      ],
    ];
    function withoutTable(name: string): string {
      const from = lines().findIndex((line) => line.startsWith(`{"table":"${name}"`));
      const until = lines().findIndex((line) => line.startsWith(`{"end":"${name}"`));
      return joined(lines().toSpliced(from, until - from + 1));
    }

    test.each(sampled(broken, brokenTried))(
      'refuses an export that %s, and imports nothing',
      async (_, make, reason) => {
        const address = await databases[to].place();
        await expect(imported(make(), await databases[to].target(address))).rejects.toThrow(reason);
        if (to === 'sqlite')
          expect(readdirSync(directory).filter((name) => join(directory, name).startsWith(address))).toEqual([]);
        // A complete export can still be imported into the same database after a refusal.
        expect((await imported(text, await databases[to].target(address))).rows).toBeGreaterThan(30);
      },
    );

    test('imports nothing if a row differs when it is read back', async () => {
      const address = await databases[to].place();
      const target = await databases[to].target(address);
      const insert = target.insert.bind(target);
      // Simulates a database that silently loses a row.
      target.insert = (table, rows) => insert(table, table.name === 'settings' ? rows.slice(1) : rows);
      await expect(imported(text, target)).rejects.toThrow(/differs from the export \(2 of 3 rows\)/);
      expect((await imported(text, await databases[to].target(address))).rows).toBeGreaterThan(30);
    });

    test('refuses a database that is not empty', async () => {
      const address = await databases[to].place();
      await imported(text, await databases[to].target(address));
      await expect(imported(text, await databases[to].target(address))).rejects.toThrow(TransferRefused);
      expect((await exported(await databases[to].source(address))).text).toBe(text);
    });

    test('imports an export with an older schema, and migrates the database', async () => {
      const old = file();
      const target = sqliteTarget(old, now);
      await target.begin(1);
      const tables = await target.tables();
      for (const table of tables) await target.insert(table, rowsFor(table, 5, tables));
      const source: TransferSource = {
        location: 'old',
        applied: async () => [{ version: 1 }],
        tables: () => target.tables(),
        rows: (table) => target.rows(table),
        counted: (table) => target.counted(table),
        close: () => target.close(),
      };
      const { text: older, report } = await exported(source);
      const address = await databases[to].place();
      const importReport = await imported(older, await databases[to].target(address));
      expect(importReport).toEqual(report);
      const after = await databases[to].source(address);
      expect((await after.applied()).at(-1)?.version).toBe(migrations.length);
      await after.close();
    });
  });

  describe('of transcripts in PostgreSQL', () => {
    const ids = ['01KAGZ7Q4W8E2R5T6Y9V0P3A1S', '01KAGZ7Q4W8E2R5T6Y9V0P3A1T', '01KAGZ7Q4W8E2R5T6Y9V0P3A1V'];
    const contents = ['{}\n'.repeat(900_000), '', '[1,"o","é"]\n'];
    const exportedTranscripts = async () => {
      const url = await databases.postgres.place();
      await (await databases.postgres.open(url)).close();
      const transcripts = transcriptsIn(url);
      for (const [n, id] of ids.entries()) {
        const recording = await transcripts.create(id, () => {});
        recording.append(contents[n] ?? '');
        // The last session is open.
        if (n < 2) await recording.finish();
        else await vi.waitFor(() => expect(recording.written).toBeGreaterThan(0));
      }
      await transcripts.pack();
      await transcripts.close();
      return exported(await databases.postgres.source(url));
    };
    beforeEach((context) => {
      if (missing) context.skip(missing);
    });

    test('moves transcripts to another PostgreSQL database', async () => {
      const one = await exportedTranscripts();
      const address = await databases.postgres.place();
      expect(await imported(one.text, await databases.postgres.target(address))).toEqual(one.report);
      const two = await exported(await databases.postgres.source(address));
      expect(two.text).toBe(one.text);
      const transcripts = transcriptsIn(address);
      for (const [n, id] of ids.entries())
        expect(String(await buffer((await transcripts.cast(id))!)) === contents[n]).toBe(true);
      await transcripts.close();
    });

    test('moves transcripts into files next to the SQLite database', async () => {
      const one = await exportedTranscripts();
      const place = join(directory, 'with-transcripts');
      mkdirSync(place);
      const address = join(place, 'muster.db');
      await imported(one.text, await databases.sqlite.target(address));
      const terminals = join(place, 'terminals');
      expect(statSync(terminals).mode & 0o777).toBe(0o700);
      expect(readdirSync(terminals)).toEqual(ids.map((id) => `${id}.cast`));
      for (const [n, id] of ids.entries()) {
        const path = join(terminals, `${id}.cast`);
        expect(readFileSync(path, 'utf8') === contents[n]).toBe(true);
        expect(statSync(path).mode & 0o777).toBe(0o600);
      }
      expect(readdirSync(place).sort()).toEqual(['muster.db', 'terminals']);
      expect((await databases.sqlite.tables(address)).filter((name) => transcriptTables.has(name))).toEqual([]);
    });

    test.each([
      ['a path as the session ID', (row: unknown[]) => row.with(0, '../../evil')],
      ['content that cannot be decompressed', (row: unknown[]) => row.with(3, 1)],
      ['a wrong size', (row: unknown[]) => row.with(2, 7)],
    ])('refuses transcripts with %s, and keeps nothing', async (_, change) => {
      const place = join(mkdtempSync(join(directory, 'refused-')), 'muster.db');
      const target = sqliteTarget(place, now);
      await target.begin(migrations.length);
      const tables = await target.tables();
      const named = (name: string) => tables.find((table) => table.name === name) as TransferTable;
      const content = Buffer.from('{}\n').toString('base64');
      const [row = []] = [change([ids[0], 0, 3, 0, content])] as TransferRow[];
      await target.insert(named('terminal_transcripts'), [[row[0] ?? '', '', 3, 1]]);
      await target.insert(named('terminal_chunks'), [row]);
      await expect(target.commit()).rejects.toThrow(/the export is damaged/);
      await target.close();
      const left = readdirSync(join(place, '..'), { recursive: true });
      expect(left.filter((name) => name !== 'terminals')).toEqual([]);
    });
  });

  test('transfers many rows in bounded memory', async () => {
    const rows = 40_000;
    const address = file();
    const target = sqliteTarget(address, now);
    await target.begin(migrations.length);
    const table = (await target.tables()).find(({ name }) => name === 'audit_events') as TransferTable;
    const metadata = 'm'.repeat(700);
    for (let at = 0; at < rows; at += 1000)
      await target.insert(
        table,
        Array.from({ length: 1000 }, (_, row) =>
          table.columns.map(({ name, type }) =>
            type === 'integer' ? at + row + 1 : name === 'metadata' ? metadata : `${name}-${at + row}`,
          ),
        ),
      );
    await target.commit();

    const path = `${address}.export`;
    const begin = liveBytes();
    let calls = 0;
    let maxBytes = 0;
    const measure = () => {
      if (++calls % 50 === 0) maxBytes = Math.max(maxBytes, liveBytes() - begin);
    };
    const source = sqliteSource(address);
    const out = createWriteStream(path);
    const write = (text: string | Uint8Array) =>
      new Promise<void>((resolve, reject) => {
        measure();
        out.write(text, (error) => (error ? reject(error) : resolve()));
      });
    const report = await exportDatabase(source, write, about);
    await new Promise((resolve) => out.end(resolve));
    await source.close();
    expect(statSync(path).size).toBeGreaterThan(32_000_000);

    const into = missing
      ? sqliteTarget(file(), now)
      : await postgresTarget(await server!.createDatabase(), 'db', 'test', now);
    const input = createReadStream(path).on('data', measure).pause();
    expect(await importDatabase(input, into)).toEqual(report);
    await into.close();
    expect(calls).toBeGreaterThan(500);
    // Only a few batches of the 32 MB of data are in memory at a time.
    expect(maxBytes).toBeLessThan(16 * 1024 * 1024);
  });
});
