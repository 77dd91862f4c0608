import { closeSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { syncPath } from '../../../../lib/src/sync-path.ts';
import {
  type AppliedMigration,
  appliedMigrationsSql,
  appliedRow,
  type MigrationOptions,
  type MigrationReport,
  migrationSql,
  pendingMigrations,
  SchemaRefused,
  versionOf,
  versionTableSql,
} from '../migrate.ts';
import type { Migration } from '../migrations/migration.ts';
import { configureSqlite, openSqliteFile } from './sqlite-connection.ts';

/**
 * Migrates a database file to the newest schema, and creates the file if it is missing. Each migration is one
 * transaction, and all migrations of an empty file share one transaction, so a killed process never leaves a partial
 * migration. A file with data is copied before it is migrated.
 * @throws SchemaRefused if the schema is newer than this release and not compatible with it, or is not a Muster
 *   database
 */
export function migrateSqlite(file: string, options: MigrationOptions): MigrationReport {
  const db = openSqliteFile(file);
  try {
    const applied = appliedTo(db, file);
    const from = versionOf(applied);
    const pending = pendingMigrations(applied, options.migrations, file);
    if (pending.length === 0) return { from, to: from, backup: null };
    const backup = from > 0 && options.backup !== false ? backUp(db, file, from, options.now()) : null;
    configureSqlite(db);
    // Rebuilding a table must not delete its child rows. `foreign_key_check` below verifies them instead.
    db.pragma('foreign_keys = off');
    const applyAll = () => pending.reduce((_, migration) => apply(db, migration, file, options), from);
    // Each commit waits until the data is on the disk.
    const to = from === 0 ? db.transaction(applyAll).immediate() : applyAll();
    return { from, to, backup };
  } finally {
    db.close();
  }
}

function appliedTo(db: Database, file: string): readonly AppliedMigration[] {
  const tables = db
    .prepare<[], { name: string }>(`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`)
    .all();
  if (tables.length === 0) return [];
  if (!tables.some((table) => table.name === 'schema_version'))
    throw new SchemaRefused(
      `${file} is not a Muster database: it has no table schema_version. Choose another data directory.`,
    );
  return db.prepare<[], AppliedMigration>(appliedMigrationsSql).all();
}

function apply(db: Database, migration: Migration, file: string, options: MigrationOptions): number {
  const statements = migrationSql(migration, 'sqlite');
  const run = db.transaction(() => {
    // Reads the version again, because another process may have migrated the database while this process waited for the
    // lock.
    const current = versionOf(appliedTo(db, file));
    if (current >= migration.version) return current;
    if (current === 0) db.exec(versionTableSql('sqlite'));
    statements.forEach((statement, index) => {
      db.exec(statement);
      options.onProgress?.({
        version: migration.version,
        name: migration.name,
        done: index + 1,
        total: statements.length,
      });
    });
    const broken = db.pragma('foreign_key_check') as unknown[];
    if (broken.length > 0)
      throw new Error(
        `Migration ${migration.version} (${migration.name}) would leave ${broken.length} rows without a parent row`,
      );
    const row = appliedRow(migration, options.now());
    const columns = Object.keys(row);
    const insert = `insert into schema_version (${columns.join(', ')}) values (${columns.map((name) => `@${name}`).join(', ')})`;
    db.prepare(insert).run(row);
    return migration.version;
  });
  return run.immediate();
}

/**
 * Copies the database file. The copy gets its final name after it is complete and synced.
 * @returns the path of the copy
 */
function backUp(db: Database, file: string, version: number, now: number): string {
  const stamp = new Date(now * 1000).toISOString().replace(/[-:]|\.\d+/g, '');
  const directory = dirname(file);
  const prefix = `${basename(file)}.v${version}-`;
  for (const name of readdirSync(directory))
    if (name.startsWith(`${basename(file)}.v`) && name.endsWith('.partial')) rmSync(join(directory, name));
  const target = join(directory, `${prefix}${stamp}.backup`);
  const partial = `${target}.partial`;
  // SQLite fills an existing empty file. Creates the file with its final mode, so that other users can never read it.
  closeSync(openSync(partial, 'wx', 0o600));
  try {
    db.prepare('vacuum into ?').run(partial);
    syncPath(partial);
    renameSync(partial, target);
    syncPath(directory);
  } catch (error) {
    rmSync(partial, { force: true });
    throw new Error(`${file} was not migrated, because its backup failed: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return target;
}
