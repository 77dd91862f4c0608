import { measureNames } from '@muster/protocol';
import type { Client } from 'pg';
import { type AppliedMigration, appliedMigrationsSql } from '../migrate.ts';
import { migrations } from '../migrations/index.ts';
import { applyMigration, migratePostgres } from '../postgres/migrate-postgres.ts';
import { rowTypes } from '../postgres/postgres-row-types.ts';
import { connect, connectionSettings } from '../postgres/postgres-settings.ts';
import { allTranscripts, type StoredTranscript } from '../transcripts/transcript-rows.ts';
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

/**
 * Exports and imports PostgreSQL databases. Except for a snapshot, the caller must hold the database lock, so that no
 * other process uses the database.
 */

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const batchRows = 500;
/** Number of rows in the first batch. The sizes of later batches are estimated from the rows already read. */
const firstRows = 8;
const batchCharacters = 4 * 1024 * 1024;
/** Approximate maximum number of characters per insert. */
const insertCharacters = 4_000_000;

const types: Readonly<Record<string, TransferType>> = {
  text: 'text',
  bigint: 'integer',
  integer: 'integer',
  'double precision': 'number',
  bytea: 'bytes',
};
const typeNames: Readonly<Record<TransferType, string>> = {
  text: 'text',
  integer: 'bigint',
  number: 'double precision',
  bytes: 'text',
};

class PostgresDatabase implements TransferTarget {
  readonly location: string;
  readonly #client: Client;
  readonly #now: () => number;
  readonly #aside: string | null;

  /** @param aside new name for the schema that contains existing data; null if the database must be empty */
  constructor(client: Client, location: string, now: () => number, aside: string | null) {
    this.#client = client;
    this.location = `${location} (PostgreSQL)`;
    this.#now = now;
    this.#aside = aside;
  }

  async #all<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#client.query<Row>({ text, values, types: rowTypes })).rows;
  }

  async applied(): Promise<readonly AppliedMigration[]> {
    const [table] = await this.#all<{ there: boolean }>(`select to_regclass('schema_version') is not null as there`);
    return table?.there ? await this.#all<AppliedMigration>(appliedMigrationsSql) : [];
  }

  /** Omits samples, the only partitioned table. Samples expire, and SQLite stores them in a separate file. */
  async tables(): Promise<readonly TransferTable[]> {
    const found = await this.#all<{
      name: string;
      columns: { name: string; type: string; counter: boolean }[];
      key: string[] | null;
      parents: string[] | null;
    }>(`select t.relname as name,
        (select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
            'counter', a.attidentity <> '') order by a.attnum)
          from pg_attribute a where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped) as columns,
        (select json_agg(a.attname order by array_position(i.indkey::int[], a.attnum::int))
          from pg_index i join pg_attribute a on a.attrelid = t.oid and a.attnum = any(i.indkey)
          where i.indrelid = t.oid and i.indisprimary) as key,
        (select json_agg(distinct p.relname) from pg_constraint c join pg_class p on p.oid = c.confrelid
          where c.conrelid = t.oid and c.contype = 'f') as parents
      from pg_class t where t.relnamespace = to_regnamespace(current_schema()) and t.relkind = 'r'
        and not t.relispartition and t.relname <> 'schema_version'`);
    return parentsFirst(
      found.map(({ name, columns, key, parents }) => ({
        name,
        columns: columns.map((column) => {
          const type = types[column.type];
          if (!type) throw new Error(`${name}.${column.name} has an unknown type: ${column.type}`);
          return { name: column.name, type };
        }),
        key: key ?? columns.map((column) => column.name),
        parents: parents ?? [],
        counter: columns.find(({ counter }) => counter)?.name ?? null,
      })),
    );
  }

  async *rows(table: TransferTable): AsyncGenerator<readonly TransferRow[]> {
    const columns = table.columns.map(({ name, type }) =>
      type === 'bytes' ? `translate(encode(${quoted(name)}, 'base64'), E'\\n', '')` : quoted(name),
    );
    const select = `select ${columns.join(', ')} from ${quoted(table.name)} order by ${table.key.map(quoted).join(', ')}`;
    yield* fetched(this.#client, select);
  }

  async counted(table: TransferTable): Promise<number | null> {
    const sequence = await this.#sequenceOf(table);
    if (sequence === null) return null;
    const [row] = await this.#all<{ last: number; called: boolean }>(
      `select last_value as last, is_called as called from ${sequence}`,
    );
    return row?.called ? row.last : null;
  }

  async #sequenceOf(table: TransferTable): Promise<string | null> {
    if (table.counter === null) return null;
    const [row] = await this.#all<{ name: string | null }>('select pg_get_serial_sequence($1, $2) as name', [
      quoted(table.name),
      table.counter,
    ]);
    return row?.name ?? null;
  }

  async read(): Promise<void> {
    await this.#client.query('begin isolation level repeatable read read only');
  }

  async begin(version: number): Promise<void> {
    // Creates the schema and inserts the rows in one transaction, so that a failed import changes nothing.
    await this.#client.query('begin isolation level repeatable read');
    if (this.#aside !== null) await moveSchemaAside(this.#client, this.#aside);
    const [table] = await this.tables();
    if (table || (await this.applied()).length > 0)
      throw new TransferRefused(`${this.location} has tables already: import into a database that is new and empty`);
    for (const migration of migrations.slice(0, version))
      await applyMigration(this.#client, migration, migration.version === 1, { now: this.#now });
    // Empties the tables first, because the export contains the current versions of the rows that migrations insert.
    for (const { name } of [...(await this.tables())].reverse())
      await this.#client.query(`delete from ${quoted(name)}`);
  }

  async insert(table: TransferTable, rows: readonly TransferRow[]): Promise<void> {
    let batch: Record<string, string | number | null>[] = [];
    let length = 0;
    for (const row of rows) {
      batch.push(Object.fromEntries(row.map((value, index) => [`c${index}`, value])));
      for (const value of row) length += typeof value === 'string' ? value.length : 8;
      if (length > insertCharacters) {
        await this.#insert(table, batch);
        batch = [];
        length = 0;
      }
    }
    if (batch.length > 0) await this.#insert(table, batch);
  }

  async #insert(table: TransferTable, batch: readonly object[]): Promise<void> {
    const { columns } = table;
    const values = columns.map(({ type }, index) => (type === 'bytes' ? `decode(c${index}, 'base64')` : `c${index}`));
    await this.#client.query({
      text: `insert into ${quoted(table.name)} (${columns.map(({ name }) => quoted(name)).join(', ')})
        select ${values.join(', ')} from json_to_recordset($1::json)
        as given(${columns.map(({ type }, index) => `c${index} ${typeNames[type]}`).join(', ')})`,
      values: [JSON.stringify(batch)],
    });
  }

  async setCounted(table: TransferTable, last: number): Promise<void> {
    const sequence = await this.#sequenceOf(table);
    if (sequence !== null) await this.#client.query('select setval($1::regclass, $2)', [sequence, last]);
  }

  async commit(): Promise<void> {
    await this.#client.query('commit');
    await migratePostgres(this.#client, { migrations, now: this.#now });
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

/** Reads the rows of a select statement in batches. Requires an open transaction. */
async function* fetched(client: Client, select: string): AsyncGenerator<(string | number | null)[][]> {
  await client.query(`declare all_rows no scroll cursor for ${select}`);
  try {
    for (let count = firstRows; ; ) {
      const { rows } = await client.query<(string | number | null)[]>({
        text: `fetch ${count} from all_rows`,
        rowMode: 'array',
        types: rowTypes,
      });
      if (rows.length === 0) return;
      yield rows;
      let characters = 0;
      for (const row of rows) for (const value of row) characters += typeof value === 'string' ? value.length : 8;
      const fitting = Math.floor((rows.length * batchCharacters) / Math.max(1, characters));
      count = Math.max(1, Math.min(batchRows, count * 4, fitting));
    }
  } finally {
    await client.query('close all_rows').catch(() => undefined);
  }
}

class PostgresSnapshot extends PostgresDatabase implements Snapshot {
  readonly #url: string;
  readonly #id: string;

  constructor(client: Client, location: string, url: string, id: string) {
    super(client, location, () => 0, null);
    this.#url = url;
    this.#id = id;
  }

  /**
   * Uses a separate, shorter transaction with the same snapshot, because a partition cannot be dropped while it is
   * locked for reading.
   */
  samples(): AsyncIterable<readonly TransferRow[]> {
    return this.#sharing((client) =>
      fetched(client, `select node_id, collected_at, ${measureNames.join(', ')} from samples`),
    );
  }

  transcripts(): AsyncIterable<StoredTranscript> {
    return this.#sharing(allTranscripts);
  }

  async *#sharing<T>(read: (client: Client) => AsyncIterable<T>): AsyncGenerator<T> {
    const settings = connectionSettings({ url: this.#url, applicationName: snapshotName });
    const client = await connect({ ...settings, types: rowTypes });
    try {
      await client.query('begin isolation level repeatable read read only');
      await client.query(`set transaction snapshot '${this.#id.replaceAll("'", '')}'`);
      yield* read(client);
      await client.query('commit');
    } finally {
      await client.end();
    }
  }
}

const snapshotName = 'muster-backup';

/**
 * Opens a snapshot of the database, even if an orchestrator is using it.
 * @param location name of the database for messages
 */
export async function postgresSnapshot(url: string, location: string): Promise<Snapshot> {
  const client = await connect(connectionSettings({ url, applicationName: snapshotName }));
  try {
    await client.query('begin isolation level repeatable read read only');
    const { rows } = await client.query<{ id: string }>('select pg_export_snapshot() as id');
    return new PostgresSnapshot(client, location, url, rows[0]?.id ?? '');
  } catch (error) {
    await client.end();
    throw error;
  }
}

const opened = async (
  url: string,
  location: string,
  applicationName: string,
  now: () => number,
  aside: string | null = null,
) => new PostgresDatabase(await connect(connectionSettings({ url, applicationName })), location, now, aside);

/**
 * Opens a database as the source of a transfer.
 * @param location name of the database for messages
 * @param applicationName `application_name` of the connection that holds the lock
 */
export async function postgresSource(url: string, location: string, applicationName: string): Promise<TransferSource> {
  const database = await opened(url, location, applicationName, () => 0);
  await database.read();
  return database;
}

/**
 * Opens a database as the target of a transfer.
 * @param now returns the current time in Unix seconds, for the migration records
 * @param aside new name for the schema that contains existing data; null if the database must be empty
 */
export const postgresTarget = (
  url: string,
  location: string,
  applicationName: string,
  now: () => number,
  aside: string | null = null,
): Promise<TransferTarget> => opened(url, location, applicationName, now, aside);

/** @returns whether Muster's tables exist, and the value of the given setting */
export async function inspectPostgres(url: string, key: string): Promise<{ rows: boolean; setting: string | null }> {
  const client = await connect(connectionSettings({ url }));
  try {
    const { rows } = await client.query<{ there: boolean }>(`select to_regclass('settings') is not null as there`);
    if (!rows[0]?.there) return { rows: false, setting: null };
    const found = await client.query<{ value: string }>('select value from settings where key = $1', [key]);
    return { rows: true, setting: found.rows[0]?.value ?? null };
  } finally {
    await client.end();
  }
}

/** Renames the current schema and creates an empty schema with its previous name. */
async function moveSchemaAside(client: Client, name: string): Promise<void> {
  const { rows } = await client.query<{ schema: string }>('select current_schema() as schema');
  const schema = rows[0]?.schema ?? 'public';
  await client.query(`alter schema ${quoted(schema)} rename to ${quoted(name)}`);
  await client.query(`create schema ${quoted(schema)}`);
}
