import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { measureNames } from '@muster/protocol';
import type { Database, Statement } from 'better-sqlite3';
import { syncPath } from '../../../../lib/src/sync-path.ts';
import { type AppliedMigration, appliedMigrationsSql } from '../migrate.ts';
import { migrations } from '../migrations/index.ts';
import { chunksOf, tableOf } from '../samples/sample-chunks.ts';
import { migrateSqlite } from '../sqlite/migrate-sqlite.ts';
import { openSqliteFile, openSqliteReader } from '../sqlite/sqlite-connection.ts';
import {
  parentsFirst,
  type Snapshot,
  TransferRefused,
  type TransferRow,
  type TransferSource,
  type TransferTable,
  type TransferTarget,
  type TransferType,
} from './transfer-table.ts';
import {
  createTranscriptTables,
  dropTranscripts,
  extractTranscripts,
  nameTranscripts,
} from './transfer-transcripts.ts';

/**
 * Exports and imports SQLite databases. Except for a snapshot, the caller must hold the data directory lock, so that no
 * other process uses the file.
 */

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const batchRows = 500;
/** A batch ends when it has more than this number of characters. */
const batchCharacters = 4 * 1024 * 1024;

const types: Readonly<Record<string, TransferType>> = {
  TEXT: 'text',
  INTEGER: 'integer',
  INT: 'integer',
  REAL: 'number',
  BLOB: 'bytes',
};

class SqliteSource implements TransferSource {
  readonly location: string;
  protected db: Database;

  constructor(file: string, location = file, open = openSqliteFile) {
    this.location = `${location} (SQLite)`;
    this.db = open(file);
    // Returns integers as numbers.
    this.db.defaultSafeIntegers(false);
  }

  async applied(): Promise<readonly AppliedMigration[]> {
    const [there] = this.db.prepare(`select 1 from sqlite_schema where name = 'schema_version'`).all();
    return there ? this.db.prepare<[], AppliedMigration>(appliedMigrationsSql).all() : [];
  }

  async tables(): Promise<readonly TransferTable[]> {
    const names = this.db
      .prepare<[], { name: string }>(
        `select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'
           and name <> 'schema_version'`,
      )
      .all();
    return parentsFirst(names.map(({ name }) => this.#table(name)));
  }

  #table(name: string): TransferTable {
    const columns = this.db.pragma(`table_info(${quoted(name)})`) as { name: string; type: string; pk: number }[];
    const parents = this.db.pragma(`foreign_key_list(${quoted(name)})`) as { table: string }[];
    const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    const [definition] = this.db
      .prepare<[string], { sql: string }>(`select sql from sqlite_schema where name = ? and type = 'table'`)
      .all(name);
    return {
      name,
      columns: columns.map((column) => {
        const type = types[column.type.toUpperCase()];
        if (!type) throw new Error(`${name}.${column.name} has an unknown type: ${column.type}`);
        return { name: column.name, type };
      }),
      key: (key.length > 0 ? key : columns).map((column) => column.name),
      parents: [...new Set(parents.map(({ table }) => table))].sort(),
      counter: /\bautoincrement\b/i.test(definition?.sql ?? '') ? (key[0]?.name ?? null) : null,
    };
  }

  async *rows(table: TransferTable): AsyncGenerator<readonly TransferRow[]> {
    const columns = table.columns.map(({ name }) => quoted(name)).join(', ');
    const key = table.key.map(quoted).join(', ');
    const all = this.db
      .prepare<[], (string | number | null | Buffer)[]>(`select ${columns} from ${quoted(table.name)} order by ${key}`)
      .raw(true);
    let batch: TransferRow[] = [];
    let characters = 0;
    for (const given of all.iterate()) {
      const row = given.map((value) => (Buffer.isBuffer(value) ? value.toString('base64') : value));
      batch.push(row);
      for (const value of row) characters += typeof value === 'string' ? value.length : 8;
      if (batch.length === batchRows || characters > batchCharacters) {
        yield batch;
        batch = [];
        characters = 0;
      }
    }
    if (batch.length > 0) yield batch;
  }

  async counted(table: TransferTable): Promise<number | null> {
    if (table.counter === null) return null;
    const [row] = this.db
      .prepare<[string], { seq: number }>('select seq from sqlite_sequence where name = ?')
      .all(table.name);
    return row?.seq ?? null;
  }

  async close(): Promise<void> {
    this.db.close();
  }
}

/**
 * Reads in one transaction, which neither blocks other connections nor sees their writes. The write-ahead log cannot be
 * fully checkpointed until the transaction ends.
 */
class SqliteSnapshot extends SqliteSource implements Snapshot {
  readonly #samples: Database | null;

  constructor(file: string, samplesFile: string | null) {
    super(file, file, openSqliteReader);
    this.#samples = samplesFile !== null && existsSync(samplesFile) ? openSqliteReader(samplesFile) : null;
    // The snapshot begins with the first read in the transaction.
    for (const db of [this.db, this.#samples])
      if (db) {
        db.exec('begin');
        db.prepare('select count(*) from sqlite_schema').get();
      }
  }

  async *transcripts(): AsyncGenerator<never> {}

  async *samples(): AsyncGenerator<readonly TransferRow[]> {
    const db = this.#samples;
    if (!db) return;
    const names = db.prepare<[], { name: string }>(`select name from sqlite_schema where type = 'table'`).all();
    for (const chunk of chunksOf(names.map(({ name }) => name))) {
      const all = db
        .prepare<[], (string | number | null)[]>(
          `select node_id, collected_at, ${measureNames.join(', ')} from ${tableOf(chunk)}`,
        )
        .raw(true);
      let batch: TransferRow[] = [];
      for (const row of all.iterate()) {
        batch.push(row);
        if (batch.length === batchRows) {
          yield batch;
          batch = [];
        }
      }
      if (batch.length > 0) yield batch;
    }
  }

  override async close(): Promise<void> {
    this.#samples?.close();
    await super.close();
  }
}

/** Fills a temporary file, which is renamed to its final name after it is complete and synced. */
class SqliteTarget extends SqliteSource implements TransferTarget {
  readonly #file: string;
  readonly #now: () => number;
  /** Directory of the transcripts. */
  readonly #transcripts: string;
  readonly #inserts = new Map<string, Statement<unknown[]>>();
  #done = false;

  constructor(file: string, now: () => number) {
    removeDatabase(`${file}.importing`);
    super(`${file}.importing`, file);
    this.#file = file;
    this.#transcripts = join(dirname(file), 'terminals');
    this.#now = now;
  }

  async begin(version: number): Promise<void> {
    if (existsSync(this.#file) && statSync(this.#file).size > 0)
      throw new TransferRefused(`a database already exists at ${this.#file}: import into a data directory without one`);
    migrateSqlite(`${this.#file}.importing`, { migrations: migrations.slice(0, version), now: this.#now });
    createTranscriptTables(this.db, version);
    // Does not use a write-ahead log, because no other process uses the file, and it is deleted after a failure.
    this.db.pragma('journal_mode = delete');
    this.db.pragma('synchronous = off');
    this.db.pragma('foreign_keys = off');
    this.db.exec('begin immediate');
    // Empties the tables first, because the export contains the current versions of the rows that migrations insert.
    for (const { name } of await this.tables()) this.db.exec(`delete from ${quoted(name)}`);
  }

  async insert(table: TransferTable, rows: readonly TransferRow[]): Promise<void> {
    let statement = this.#inserts.get(table.name);
    if (!statement) {
      const columns = table.columns.map(({ name }) => quoted(name)).join(', ');
      const placeholders = table.columns.map(() => '?').join(', ');
      statement = this.db.prepare(`insert into ${quoted(table.name)} (${columns}) values (${placeholders})`);
      this.#inserts.set(table.name, statement);
    }
    for (const row of rows)
      statement.run(
        row.map((value, index) =>
          table.columns[index]?.type === 'bytes' && typeof value === 'string' ? Buffer.from(value, 'base64') : value,
        ),
      );
  }

  async setCounted(table: TransferTable, last: number): Promise<void> {
    this.db.prepare('delete from sqlite_sequence where name = ?').run(table.name);
    this.db.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(table.name, last);
  }

  async commit(): Promise<void> {
    const broken = this.db.pragma('foreign_key_check') as { table: string }[];
    if (broken.length > 0) throw new TransferRefused(`a row of ${broken[0]?.table} has no parent row`);
    const hasTranscripts = extractTranscripts(this.db, this.#transcripts);
    this.db.exec('commit');
    // Frees the space of the transcripts, which have been moved to files.
    if (hasTranscripts) this.db.exec('vacuum');
    this.db.close();
    const filling = `${this.#file}.importing`;
    // Creates no backup before the migration, because the file is new.
    migrateSqlite(filling, { migrations, now: this.#now, backup: false });
    syncPath(filling);
    if (hasTranscripts) {
      nameTranscripts(this.#transcripts);
      syncPath(this.#transcripts);
    }
    removeDatabase(this.#file);
    renameSync(filling, this.#file);
    syncPath(dirname(this.#file));
    this.#done = true;
  }

  override async close(): Promise<void> {
    if (this.db.open) this.db.close();
    if (this.#done) return;
    removeDatabase(`${this.#file}.importing`);
    dropTranscripts(this.#transcripts);
  }
}

function removeDatabase(file: string): void {
  for (const ending of ['', '-wal', '-shm', '-journal']) rmSync(`${file}${ending}`, { force: true });
}

/** @throws TransferRefused if the file does not exist */
export function sqliteSource(file: string): TransferSource {
  if (!existsSync(file)) throw new TransferRefused(`no database found at ${file}`);
  return new SqliteSource(file);
}

/** @param now returns the current time in Unix seconds, for the migration records */
export const sqliteTarget = (file: string, now: () => number): TransferTarget => new SqliteTarget(file, now);

/**
 * Opens a snapshot of both files while an orchestrator may be writing to them.
 * @param samplesFile null for a snapshot without samples
 * @throws TransferRefused if the database does not exist
 */
export function sqliteSnapshot(file: string, samplesFile: string | null): Snapshot {
  if (!existsSync(file)) throw new TransferRefused(`no database found at ${file}`);
  return new SqliteSnapshot(file, samplesFile);
}
