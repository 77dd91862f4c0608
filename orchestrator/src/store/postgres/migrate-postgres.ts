import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, ClientBase } from 'pg';
import {
  type AppliedMigration,
  appliedMigrationsSql,
  appliedRow,
  type MigrationOptions,
  type MigrationReport,
  migrationSql,
  oldestUsing,
  pendingMigrations,
  refuseBesideOlder,
  SchemaRefused,
  versionOf,
  versionTableSql,
} from '../migrate.ts';
import type { Migration } from '../migrations/migration.ts';
import { lockNotAvailable } from './postgres-failure.ts';
import { closeUnlocked, unlockedReplicas } from './unlocked-replicas.ts';

/** Another replica that uses the database. */
export interface OtherReplica {
  readonly name: string;
  /** Newest schema version that the replica can use. */
  readonly schema: number;
}

/** Newest schema version that a replica can use if its release does not report one. */
export const unstatedSchema = 34;

export interface PostgresMigrationOptions extends MigrationOptions {
  /** Null if only this process uses the database. */
  readonly fleet?: MigratingFleet | null;
}

/** How a replica that migrates the database treats the other replicas. */
export interface MigratingFleet {
  /** Returns the other replicas that hold the lock, with the newest schema version that each can use. */
  readonly others: (client: ClientBase) => Promise<readonly OtherReplica[]>;
  /** Milliseconds without a heartbeat after which a replica that holds no lock is closed; 10 seconds by default. */
  readonly closeAfterMs?: number | undefined;
  /** Milliseconds between two attempts to lock a table that is in use; 2 seconds by default. */
  readonly lockPauseMs?: number | undefined;
}

/** Key of the advisory lock that allows only one process to migrate at a time. */
export const lockKey = 0x6d757374;

/**
 * Milliseconds that a migration waits for a table while other replicas run. Statements of these replicas queue behind
 * the migration, and their heartbeats fail after three seconds.
 */
const lockTimeoutMs = 1_000;
/** Default delay between two attempts, in milliseconds, during which statements of other replicas can run. */
const lockPauseMs = 2_000;
const maxLockAttempts = 40;
const tablesInUse =
  'a migration of the PostgreSQL database cannot lock its tables, because another connection uses them, for example ' +
  'pg_dump; nothing was changed: wait until it has ended, then start this replica again';

/** The name of the database in error messages. */
const where = 'The PostgreSQL database';

/**
 * Migrates a database to the newest schema, each migration in one transaction. Processes that start together take
 * turns. Does not create a backup.
 * @throws SchemaRefused if the database is newer than this release and not compatible with it, or if a running replica
 *   could not use it afterward
 */
export async function migratePostgres(
  client: Client | ClientBase,
  options: PostgresMigrationOptions,
): Promise<MigrationReport> {
  const before = await appliedBefore(client);
  const from = versionOf(before);
  let to = from;
  const { fleet } = options;
  const due = pendingMigrations(before, options.migrations, where);
  if (fleet && oldestUsing(due) > unstatedSchema)
    await closeUnlocked(client, () => lockedNames(client, fleet), fleet.closeAfterMs);
  for (const migration of due) {
    for (let attempt = 1; ; attempt++) {
      try {
        to = Math.max(to, await migrateOnce(client, migration, options));
        break;
      } catch (error) {
        if (!fleet || (error as { code?: unknown }).code !== lockNotAvailable) throw error;
        if (attempt === maxLockAttempts) throw new SchemaRefused(tablesInUse);
        await sleep(fleet.lockPauseMs ?? lockPauseMs);
      }
    }
  }
  return { from, to, backup: null };
}

/**
 * Runs one migration in a transaction, unless another process has run it.
 * @returns the schema version afterward
 */
async function migrateOnce(
  client: Client | ClientBase,
  migration: Migration,
  options: PostgresMigrationOptions,
): Promise<number> {
  const { fleet } = options;
  await client.query('begin');
  try {
    await client.query('select pg_advisory_xact_lock($1)', [lockKey]);
    const applied = await appliedTo(client);
    // Reads the version again, because another process, perhaps from a newer release, may have migrated the database
    // while this process waited for the lock.
    const pending = pendingMigrations(applied, options.migrations, where);
    const current = versionOf(applied);
    if (fleet) {
      refuseBesideOlder(pending, await othersOf(client, fleet));
      await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
    }
    if (current < migration.version) await applyMigration(client, migration, current === 0, options);
    await client.query('commit');
    return Math.max(current, migration.version);
  } catch (error) {
    // Without a connection, the rollback fails too. The caller needs the original error.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/**
 * Waits for the end of any migration that another process is running.
 * @throws SchemaRefused if the database is newer than these migrations and not compatible with them
 */
export async function requireUsable(client: Client | ClientBase, migrations: readonly Migration[]): Promise<void> {
  pendingMigrations(await appliedBefore(client), migrations, where);
}

const lockedNames = async (client: ClientBase, { others }: MigratingFleet): Promise<string[]> =>
  (await others(client)).map(({ name }) => name);

/** Returns the other replicas that hold the lock or have a row. */
async function othersOf(client: ClientBase, { others }: MigratingFleet): Promise<OtherReplica[]> {
  const locked = await others(client);
  const names = locked.map(({ name }) => name);
  const unlocked = await unlockedReplicas(client, names);
  return [...locked, ...unlocked.map(({ name }) => ({ name, schema: unstatedSchema }))];
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
 * Reads the applied migrations after the end of any migration that another process is running. Otherwise, a replica of
 * an older release could start with a schema that a newer replica is about to change, because the newer replica checks
 * only the replicas that held the lock when its migration began.
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
