import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.ts';
import type { MigrationReport } from './migrate.ts';
import { openPostgres } from './postgres/postgres.ts';
import { postgresFailure } from './postgres/postgres-failure.ts';
import { DatabaseInUse } from './postgres/postgres-lock.ts';
import type { StoredKey } from './replicas.ts';
import { openSqlite } from './sqlite/sqlite.ts';

export interface DatabaseLocation {
  /** The SQLite file; unused with PostgreSQL. */
  readonly file: string;
  readonly postgres: {
    readonly url: string;
    readonly poolSize: number;
    readonly statementTimeout: number;
    /** Name of this replica, which shares the database with other replicas; null to use the database alone. */
    readonly replica: string | null;
  } | null;
}

export interface DatabaseDeps {
  /** Returns the current time in Unix milliseconds. */
  readonly now: () => number;
  readonly onFatal: (reason: Error) => void;
  /** Called after a commit with the number of writes that shared the transaction, and its duration. */
  readonly onCommit?: (units: number, ms: number) => void;
  readonly onMigrated: (report: MigrationReport) => void;
  /** Compares the keys of this replica with those of the other replicas before the database is migrated. */
  readonly checkKeys?: ((stored: readonly StoredKey[]) => void) | null;
  readonly log: {
    info(about: object, message: string): void;
    warn(about: object, message: string): void;
    error(about: object, message: string): void;
  };
}

/**
 * Maximum time to wait for the PostgreSQL server at startup, because it may start later than the orchestrator; in
 * milliseconds.
 */
const serverStartMs = 30_000;

/**
 * Opens the database for this process alone or, with PostgreSQL, for this replica and other replicas.
 * @throws DatabaseInUse, SchemaRefused, and server or disk errors
 */
export async function openDatabase(location: DatabaseLocation, deps: DatabaseDeps): Promise<Database> {
  const { onFatal, onMigrated, log } = deps;
  const committed = deps.onCommit ? { onCommit: deps.onCommit } : {};
  const now = () => Math.floor(deps.now() / 1000);
  const { postgres } = location;
  if (postgres === null) return await openSqlite({ file: location.file, now, onFatal, onMigrated, ...committed });
  const until = performance.now() + serverStartMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await openPostgres({
        url: postgres.url,
        maxConnections: postgres.poolSize,
        statementTimeout: postgres.statementTimeout,
        now,
        onMigrated,
        ...committed,
        ...(deps.checkKeys ? { checkKeys: deps.checkKeys } : {}),
        onNotice: (notice) => log.warn({}, notice),
        onConnectionError: (error) => log.warn({ err: error }, 'lost a database connection'),
        lock: {
          replica: postgres.replica,
          onLost: (reason) =>
            log.error(
              { err: reason },
              'lost the connection to the database server; refusing writes until it is available again',
            ),
          onRegained: () => log.info({}, 'database server available again'),
          onTaken: onFatal,
        },
      });
    } catch (error) {
      const waits = !(error instanceof DatabaseInUse) && postgresFailure(error).kind === 'gone';
      if (!waits || performance.now() > until) throw error;
      if (attempt === 1) log.warn({ err: error }, 'database server is not responding; retrying for up to 30 s');
      await sleep(500);
    }
  }
}
