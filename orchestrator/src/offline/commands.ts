import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import type { Config } from '../config/schema.ts';
import { newerSchemaNote } from '../store/migrate.ts';
import { migrations } from '../store/migrations/index.ts';
import { migratePostgres } from '../store/postgres/migrate-postgres.ts';
import { connect, connectionSettings } from '../store/postgres/postgres-settings.ts';
import { migrateSqlite } from '../store/sqlite/migrate-sqlite.ts';
import { exportDatabase, importDatabase, type TransferReport } from '../store/transfer/transfer.ts';
import { postgresSource, postgresTarget } from '../store/transfer/transfer-postgres.ts';
import { sqliteSource, sqliteTarget } from '../store/transfer/transfer-sqlite.ts';
import { version as musterVersion } from '../version.ts';
import { backupCommands } from './backup-commands.ts';
import type { OfflineCommand, Terminal } from './command.ts';
import { type LockedDatabase, lockDatabase } from './locked-database.ts';
import { replaceable } from './replaceable.ts';
import { shareCommands } from './share-commands.ts';

/** Commands for a database that no orchestrator is using: `migrate`, `export`, and `import`. */

const databaseOptions = `  --data-dir DIR             Directory of the SQLite database
  --database-url-file FILE   File with the URL of a PostgreSQL database instead
  --database-url URL         The URL itself; process lists show its password
  --config FILE              Configuration that names the database
  --json                     Print the result as JSON
`;

async function withDatabase<T>(
  config: Config,
  dataDir: string,
  make: boolean,
  work: (place: LockedDatabase) => Promise<T>,
): Promise<T> {
  const database = await lockDatabase(config, dataDir, make);
  try {
    return await work(database);
  } finally {
    await database.release();
  }
}

const onTable =
  ({ tell }: Terminal) =>
  ({ table, rows, sha256 }: { table: string; rows: number; sha256: string }) =>
    tell(`  ${table.padEnd(28)} ${String(rows).padStart(10)} rows  ${sha256.slice(0, 16)}`);

const migrate: OfflineCommand = {
  words: [],
  usage: `Usage: muster migrate [options]

Migrates the schema of a database to this release, without starting an
orchestrator. A SQLite file with data is copied first; back up a PostgreSQL
database with pg_dump. Refuses a schema of a newer release, and a database in
use by an orchestrator. Starting an orchestrator migrates its database, too.

${databaseOptions}
Examples:
  $ muster migrate --data-dir /var/lib/muster-orchestrator
  $ muster migrate --database-url-file /etc/muster/database-url
`,
  run: (config, dataDir, _words, terminal) =>
    withDatabase(config, dataDir, false, async (database) => {
      const options = { migrations, now: () => Math.floor(terminal.now() / 1000) };
      const report =
        database.kind === 'sqlite' ? migrateSqlite(database.file, options) : await migrated(database.url, options);
      const { from, to, backup } = report;
      if (from === to) terminal.tell(`${database.name} is already at schema version ${to}; nothing was changed`);
      else {
        for (const { version, name } of migrations.slice(from, to)) terminal.tell(`  ${version} ${name}`);
        const before = from === 0 ? 'was empty and' : `was at schema version ${from} and`;
        terminal.tell(`${database.name} ${before} is now at version ${to}`);
      }
      if (backup !== null) terminal.tell(`backup of the former database: ${backup}`);
      return { database: database.name, ...report };
    }),
};

async function migrated(url: string, options: Parameters<typeof migratePostgres>[1]) {
  const client = await connect(connectionSettings({ url }));
  try {
    return await migratePostgres(client, options);
  } finally {
    await client.end();
  }
}

const exporting: OfflineCommand = {
  words: ['FILE'],
  usage: `Usage: muster export [options] FILE

Writes all tables of a database to a file, or to standard output for \`-\`, in a
format that every supported database can import. Only you can read the file. Not
included: metrics, transcripts in the data directory, and the keys there,
without which agents refuse the orchestrator and secrets cannot be decrypted.
Refuses a database in use by an orchestrator.

${databaseOptions}
Examples:
  $ muster export --data-dir /var/lib/muster-orchestrator muster.export
  $ muster export --data-dir ./data - | muster import --data-dir ./copy -
`,
  run: async (config, dataDir, [named = ''], terminal) => {
    const file = named === '-' ? named : await replaceable(named);
    return withDatabase(config, dataDir, false, async (database) => {
      terminal.tell(`exporting ${database.name}`);
      const source =
        database.kind === 'sqlite'
          ? sqliteSource(database.file)
          : await postgresSource(database.url, database.name, database.applicationName);
      const about = { musterVersion, now: new Date(terminal.now()), onTable: onTable(terminal) };
      try {
        const report = await (file === '-'
          ? exportDatabase(source, writerTo(terminal.stdout), about)
          : intoFile(file, (write) => exportDatabase(source, write, about)));
        terminal.tell(`exported ${report.rows} rows of ${report.tables.length} tables`);
        terminal.tell('not included: metrics, and the keys and transcripts in the data directory');
        const note = newerSchemaNote(report.schema_version);
        if (note !== null) terminal.tell(note);
        return { database: database.name, ...report };
      } finally {
        await source.close();
      }
    });
  },
};

/** Writes a temporary file, syncs it, and renames it to the final name. */
async function intoFile(
  path: string,
  work: (write: (text: string) => Promise<void>) => Promise<TransferReport>,
): Promise<TransferReport> {
  const partial = `${path}.partial`;
  await rm(partial, { force: true });
  const handle = await open(partial, 'wx', 0o600);
  try {
    const report = await work((text) => handle.appendFile(text));
    await handle.sync();
    await handle.close();
    await rename(partial, path);
    return report;
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(partial, { force: true });
    throw error;
  }
}

/** Returns a function that writes text, and resolves when the reader of the pipe has accepted the text. */
const writerTo =
  (stream: NodeJS.WritableStream) =>
  (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      stream.write(text, (error) => (error ? reject(error) : resolve()));
    });

const importing: OfflineCommand = {
  words: ['FILE'],
  usage: `Usage: muster import [options] FILE

Imports an export into an empty database, from a file, or from standard input
for \`-\`. Everything is imported or nothing: a damaged or truncated export is
refused. Before the commit every row is read back, and the number and the digest
of each table's rows are compared with the export. Then the schema is migrated
to this release.

${databaseOptions}
Examples:
  $ muster import --database-url-file /etc/muster/database-url muster.export
  $ muster import --data-dir /var/lib/muster-orchestrator muster.export
`,
  run: (config, dataDir, [file], terminal) =>
    withDatabase(config, dataDir, true, async (database) => {
      terminal.tell(`importing into ${database.name}`);
      const now = () => Math.floor(terminal.now() / 1000);
      const target =
        database.kind === 'sqlite'
          ? sqliteTarget(database.file, now)
          : await postgresTarget(database.url, database.name, database.applicationName, now);
      try {
        const bytes = file === '-' ? terminal.stdin : createReadStream(file as string);
        const report = await importDatabase(bytes, target, { onTable: onTable(terminal) });
        terminal.tell(
          `imported ${report.rows} rows of ${report.tables.length} tables; each table was read back and verified`,
        );
        terminal.tell('an export contains no keys: copy identity.key and the other files of the data directory');
        return { database: database.name, ...report };
      } finally {
        await target.close();
      }
    }),
};

export const offlineCommands: Readonly<Record<string, OfflineCommand>> = {
  migrate,
  export: exporting,
  import: importing,
  ...backupCommands,
  ...shareCommands,
};
