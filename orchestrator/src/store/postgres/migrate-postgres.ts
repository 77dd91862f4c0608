import type { Client, ClientBase } from 'pg';
import {
  type AppliedMigration,
  appliedMigrationsSql,
  appliedRow,
  type MigrationOptions,
  type MigrationReport,
  migrationSql,
  pendingMigrations,
  refuseBesideOlder,
  versionOf,
  versionTableSql,
} from '../migrate.ts';
import type { Migration } from '../migrations/migration.ts';

export interface PostgresMigrationOptions extends MigrationOptions {
  /** Returns the other replicas that run, with the newest schema version that each can use. */
  readonly others?: (client: ClientBase) => Promise<readonly { readonly name: string; readonly schema: number }[]>;
}

/** Key of the advisory lock that allows only one process to migrate at a time. */
export const lockKey = 0x6d757374;

/**
 * Migrates a database to the newest schema, each migration in one transaction. Processes that start together take
 * turns. Does not create a backup.
 * @throws SchemaRefused if the database is newer than this release and not compatible with it, or if other replicas run
 * that could not use it afterward
 */
export async function migratePostgres(
  client: Client | ClientBase,
  options: PostgresMigrationOptions,
): Promise<MigrationReport> {
  const before = await appliedBefore(client);
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
      const pending = pendingMigrations(applied, options.migrations, where);
      if (options.others) refuseBesideOlder(pending, await options.others(client));
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

/**
 * Reads the applied migrations after the migration that another process may run now. Otherwise, a replica of an older
 * release could start on a schema that a newer one is about to change: the newer one has seen only the replicas that
 * held the lock when its migration began.
 */
async function appliedBefore(client: Client | ClientBase): Promise<readonly AppliedMigration[]> {
  await client.query('begin');
  try {
    await client.query('select pg_advisory_xact_lock_shared($1)', [lockKey]);
    const applied = await appliedTo(client);
    await client.query('commit');
    return applied;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
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
