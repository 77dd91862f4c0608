import type { Client, ClientBase } from 'pg';
import {
  type AppliedMigration,
  appliedMigrationsSql,
  appliedRow,
  type MigrationOptions,
  type MigrationReport,
  migrationSql,
  pendingMigrations,
  versionOf,
  versionTableSql,
} from '../migrate.ts';
import type { Migration } from '../migrations/migration.ts';

/** Key of the advisory lock that allows only one process to migrate at a time. */
export const lockKey = 0x6d757374;

/**
 * Migrates a database to the newest schema, each migration in one transaction. Processes that start together take
 * turns. Does not create a backup.
 * @throws SchemaRefused if the database is newer than this release and not compatible with it
 */
export async function migratePostgres(
  client: Client | ClientBase,
  options: MigrationOptions,
): Promise<MigrationReport> {
  const before = await appliedTo(client);
  const from = versionOf(before);
  const where = 'The PostgreSQL database';
  let to = from;
  for (const migration of pendingMigrations(before, options.migrations, where)) {
    await client.query('begin');
    try {
      await client.query('select pg_advisory_xact_lock($1)', [lockKey]);
      const applied = await appliedTo(client);
      // Reads the version again, because another process, perhaps from a newer release, may have migrated the database
      // while this process waited for the lock.
      pendingMigrations(applied, options.migrations, where);
      const current = versionOf(applied);
      if (current < migration.version) {
        await applyMigration(client, migration, current === 0, options);
      }
      await client.query('commit');
      to = Math.max(current, migration.version);
    } catch (error) {
      // Without a connection, the rollback fails too. The caller needs the original error.
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
  const row = appliedRow(migration, options.now());
  const columns = Object.keys(row);
  const places = columns.map((_, index) => `$${index + 1}`);
  await client.query(
    `insert into schema_version (${columns.join(', ')}) values (${places.join(', ')})`,
    Object.values(row),
  );
}

async function appliedTo(client: Client | ClientBase): Promise<readonly AppliedMigration[]> {
  const table = await client.query<{ there: boolean }>(`select to_regclass('schema_version') is not null as there`);
  if (!table.rows[0]?.there) return [];
  const { rows } = await client.query<{ version: string; compatible_from?: string | null }>(appliedMigrationsSql);
  return rows.map(({ version, compatible_from }) => ({
    version: Number(version),
    compatible_from: compatible_from == null ? null : Number(compatible_from),
  }));
}
