import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

/** Creates databases on a PostgreSQL server. */
export interface Databases {
  /**
   * Creates a database and returns its connection URL.
   * @param template the database to copy; by default, creates an empty database
   */
  createDatabase(template?: string): Promise<string>;
  /** Returns every row in a database as text, by table. */
  dump(url: string): Promise<Map<string, string>>;
  /** Drops the created databases, and closes the connection to the server. */
  dropDatabases(): Promise<void>;
}

/** @param url URL of a database on the server, with a user that has permission to create databases */
export function databasesOn(url: string): Databases {
  const made: string[] = [];
  // All statements share a connection, because opening one takes as long as copying a database.
  let connected: Promise<Client> | undefined;
  const administer = async (text: string) => {
    connected ??= connect(url, () => {
      connected = undefined;
    });
    await (await connected).query(text);
  };
  return {
    async createDatabase(template = 'template1') {
      // Uses a random name, because several test files create databases on the same server at the same time.
      const name = `test_${randomBytes(8).toString('hex')}`;
      // Copies the files, because without fsync, this takes half as long as writing the write-ahead log.
      await administer(`create database ${name} template ${template} strategy file_copy`);
      made.push(name);
      return String(Object.assign(new URL(url), { pathname: `/${name}` }));
    },
    async dump(of) {
      const { rows: tables } = await query<{ name: string }>(
        of,
        "select tablename as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
      );
      const dump = new Map<string, string>();
      for (const { name } of tables) {
        const { rows } = await query<unknown[]>(of, { text: `select * from "${name}"`, rowMode: 'array' });
        dump.set(name, rows.map((row) => row.join('\t')).join('\n'));
      }
      return dump;
    },
    async dropDatabases() {
      for (const name of made.splice(0)) await administer(`drop database ${name} with (force)`);
      await (await connected)?.end();
      connected = undefined;
    },
  };
}

async function query<Row>(url: string, text: string | { text: string; rowMode: 'array' }): Promise<{ rows: Row[] }> {
  const client = await connect(url);
  try {
    return (await client.query(text as string)) as unknown as { rows: Row[] };
  } finally {
    await client.end();
  }
}

/** @param onLost called when the server closes the connection */
async function connect(url: string, onLost: () => void = () => {}): Promise<Client> {
  const client = new Client({ connectionString: url }).on('error', onLost);
  await client.connect();
  return client;
}
