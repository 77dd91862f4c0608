import type { Client, ClientBase } from 'pg';
import {
  type MigrationOptions,
  type MigrationReport,
  migrationSql,
  pendingMigrations,
  versionTableSql,
} from '../migrate.ts';
import type { Migration } from '../migrations/migration.ts';

/** Key of the advisory lock that allows only one process to migrate at a time. */
export const lockKey = 0x6d757374;

/**
 * Migrates a database to the newest schema, each migration in one transaction. Processes that start together take
 * turns. Creates no backup.
 * @throws SchemaRefused if the database is newer than this release
 */
export async function migratePostgres(
  client: Client | ClientBase,
  options: MigrationOptions,
): Promise<MigrationReport> {
  const from = await versionOf(client);
  const where = 'The PostgreSQL database';
  let to = from;
  for (const migration of pendingMigrations(from, options.migrations, where)) {
    await client.query('begin');
    try {
      await client.query('select pg_advisory_xact_lock($1)', [lockKey]);
      const current = await versionOf(client);
      // Reads the version again, because another process, perhaps from a newer release, may have migrated the database
      // while this process waited for the lock.
      pendingMigrations(current, options.migrations, where);
      if (current < migration.version) {
        await applyMigration(client, migration, current === 0, options);
      }
      await client.query('commit');
      to = Math.max(current, migration.version);
    } catch (error) {
      // Without a connection, the rollback fails too. The caller needs the first error.
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  }
  return { from, to, backup: null };
}

/**
 * Runs one migration in the open transaction.
 * @param first whether the database is empty
 */
export async function applyMigration(
  client: Client | ClientBase,
  migration: Migration,
  first: boolean,
  options: Pick<MigrationOptions, 'now' | 'onProgress'>,
): Promise<void> {
  const { version, name } = migration;
  if (first) await client.query(versionTableSql('postgres'));
  const statements = migrationSql(migration, 'postgres');
  for (const [index, statement] of statements.entries()) {
    await client.query(statement);
    options.onProgress?.({ version, name, done: index + 1, total: statements.length });
  }
  await client.query('insert into schema_version (version, name, applied_at) values ($1, $2, $3)', [
    version,
    name,
    options.now(),
  ]);
}

async function versionOf(client: Client | ClientBase): Promise<number> {
  const table = await client.query<{ there: boolean }>(`select to_regclass('schema_version') is not null as there`);
  if (!table.rows[0]?.there) return 0;
  const newest = await client.query<{ version: string | null }>('select max(version) as version from schema_version');
  return Number(newest.rows[0]?.version ?? 0);
}
