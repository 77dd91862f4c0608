import { builders, type DatabaseKind, dialects } from './dialect.ts';
import { migrations } from './migrations/index.ts';
import type { Migration } from './migrations/migration.ts';

/**
 * This release cannot use the schema of the database. The database is unchanged, and the orchestrator does not start.
 */
export class SchemaRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaRefused';
  }
}

export interface MigrationProgress {
  readonly version: number;
  readonly name: string;
  /** Number of this migration's statements that have run. */
  readonly done: number;
  readonly total: number;
}

export interface MigrationOptions {
  readonly migrations: readonly Migration[];
  /** Returns the current time in Unix seconds. */
  readonly now: () => number;
  /** Whether to copy a nonempty SQLite file before migrating it; true by default. */
  readonly backup?: boolean;
  /** Called inside the transaction, after each statement. */
  readonly onProgress?: ((progress: MigrationProgress) => void) | undefined;
}

export interface MigrationReport {
  readonly from: number;
  readonly to: number;
  /** Path of the copy created before the migration; null if the file was empty or the database is PostgreSQL. */
  readonly backup: string | null;
}

/** A row of `schema_version`. Before schema version 27, it has no `compatible_from`. */
export interface AppliedMigration {
  readonly version: number;
  readonly compatible_from?: number | null;
}

/** Reads the applied migrations, oldest first. */
export const appliedMigrationsSql = 'select * from schema_version order by version';

/** Returns the schema version of a database; 0 if it is empty. */
export const versionOf = (applied: readonly AppliedMigration[]): number => applied.at(-1)?.version ?? 0;

/** Returns the oldest schema version whose releases can use a database; 0 if it is empty. */
export const compatibleFromOf = (applied: readonly AppliedMigration[]): number =>
  applied.reduce((oldest, { version, compatible_from }) => Math.max(oldest, compatible_from ?? version), 0);

/**
 * Returns a note for operators about an export or a backup whose schema is newer than this release's schema; null for
 * any other export or backup.
 */
export const newerSchemaNote = (version: number): string | null =>
  version > migrations.length
    ? `a newer release upgraded the database to schema version ${version}: only releases that support this version can import or restore it`
    : null;

/** Returns the `schema_version` row that records a migration. */
export const appliedRow = ({ version, name, compatibleFrom }: Migration, now: number) => ({
  version,
  name,
  applied_at: now,
  ...(compatibleFrom === undefined ? {} : { compatible_from: compatibleFrom }),
});

/**
 * Returns the migrations that are due; none if the database is newer than this release, but compatible with it.
 * @param applied migrations of the database, oldest first
 * @param where name of the database in error messages
 * @throws SchemaRefused if the database is newer than this release, and not compatible with it
 */
export function pendingMigrations(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
  where: string,
): readonly Migration[] {
  migrations.forEach((migration, index) => {
    if (migration.version !== index + 1)
      throw new Error(
        `Migration ${migration.name} has version ${migration.version}, but is number ${index + 1} in the list`,
      );
  });
  if (compatibleFromOf(applied) > migrations.length)
    throw new SchemaRefused(
      `${where} has schema version ${versionOf(applied)}, but this release of Muster supports versions up to ${migrations.length}. ` +
        'A newer release wrote it: start that release, or restore the backup from before the upgrade.',
    );
  return migrations.slice(versionOf(applied));
}

/** Returns the oldest schema version whose releases can use the database after these migrations; 0 without any. */
export const oldestUsing = (pending: readonly Migration[]): number =>
  pending.reduce((most, { version, compatibleFrom }) => Math.max(most, compatibleFrom ?? version), 0);

/**
 * Decides whether a replica may migrate the database while other replicas run.
 * @param pending the migrations that are due
 * @param others the other running replicas, with the newest schema version that each can use
 * @throws SchemaRefused if a replica could not use the database afterward
 */
export function refuseBesideOlder(
  pending: readonly Migration[],
  others: readonly { readonly name: string; readonly schema: number }[],
): void {
  const oldest = oldestUsing(pending);
  const names = others.filter(({ schema }) => schema < oldest).map(({ name }) => name);
  if (names.length === 0) return;
  const [replicas, them] = names.length === 1 ? ['the replica', 'it'] : ['the replicas', 'them'];
  throw new SchemaRefused(
    `this release requires a database migration, after which ${replicas} ${names.toSorted().join(', ')} could not use it; ` +
      `nothing was changed: stop ${them} first, then start this replica again`,
  );
}

/** Compiles a migration's SQL statements. */
export function migrationSql(migration: Migration, kind: DatabaseKind): readonly string[] {
  const build = { db: builders[kind], dialect: dialects[kind] };
  return migration.statements(build).map((statement) => {
    const { sql, parameters } = statement.compile(builders[kind]);
    if (parameters.length > 0) throw new Error(`Migration ${migration.name} has a statement with parameters: ${sql}`);
    return sql;
  });
}

/** Returns the SQL that creates the table of applied migrations. */
export function versionTableSql(kind: DatabaseKind): string {
  const { columns } = dialects[kind];
  return builders[kind].schema
    .createTable('schema_version')
    .addColumn('version', columns.integer, (column) => column.notNull().primaryKey())
    .addColumn('name', columns.text, (column) => column.notNull())
    .addColumn('applied_at', columns.integer, (column) => column.notNull())
    .modifyEnd(columns.tableEnd)
    .compile().sql;
}
