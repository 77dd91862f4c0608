import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, inject } from 'vitest';
import { isSampling, sampled, seededRandom } from '../../../lib/test/sampled.ts';
import type { Database } from '../../src/store/database.ts';
import type { DatabaseKind } from '../../src/store/dialect.ts';
import { migrations as allMigrations } from '../../src/store/migrations/index.ts';
import { openPostgres, type PostgresOptions } from '../../src/store/postgres/postgres.ts';
import { migrateSqlite } from '../../src/store/sqlite/migrate-sqlite.ts';
import { openSqlite, type SqliteOptions } from '../../src/store/sqlite/sqlite.ts';
import { scratchDirectory } from '../scratch.ts';
import { testTime } from './database-time.ts';
import { type Databases, databasesOn } from './postgres-databases.ts';

export { testTime };

/** The location of a database: a file or a URL. Opening the same location twice opens the same database. */
export type DatabaseAddress = string;

export interface DatabaseFixture {
  readonly kind: DatabaseKind;
  /** Creates a location for a new, empty database. */
  newAddress(): Promise<DatabaseAddress>;
  /**
   * Opens a database, by default at a new location. A new database is a copy of a migrated template unless the test
   * observes the migrations. The database is closed after the test.
   */
  open(options?: OpenOptions & { at?: DatabaseAddress }): Promise<Database>;
}

type OpenOptions = Partial<SqliteOptions & PostgresOptions>;

/** Reports whether a test observes the migrations, and therefore needs an empty database. */
const observesMigrations = ({ migrations, onMigrated, onProgress }: OpenOptions): boolean =>
  Boolean(migrations || onMigrated || onProgress);

let migrated: Buffer | undefined;

/** Returns the content of an SQLite file with the current schema. All tests in a process share it. */
function migratedSqlite(): Buffer {
  if (migrated) return migrated;
  const directory = scratchDirectory('muster-sqlite-');
  try {
    const file = join(directory, 'template.db');
    migrateSqlite(file, { migrations: allMigrations, now: () => testTime });
    migrated = readFileSync(file);
    return migrated;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

type Suite = (fixture: DatabaseFixture) => void;

const suites: Readonly<Record<DatabaseKind, (name: string, suite: Suite) => void>> = {
  sqlite: describeSqlite,
  postgres: describePostgres,
};

/**
 * Registers a suite once for each database. If PostgreSQL cannot run, the suite for PostgreSQL is skipped with the
 * reason; with `CI=true`, it fails.
 */
export function describeDatabases(name: string, suite: Suite): void {
  for (const describeOn of Object.values(suites)) describeOn(name, suite);
}

/**
 * Registers a suite whose tests do not depend on how a database stores rows or resolves conflicts: in `npm test` for one
 * database, which the seed of the run selects, otherwise for each database.
 */
export function describeAnyDatabase(name: string, suite: Suite): void {
  const kinds = sampled(['sqlite', 'postgres'] as const, 1, !isSampling(), seededRandom(name));
  for (const kind of kinds) suites[kind](name, suite);
}

function describeSqlite(name: string, suite: Suite): void {
  describe(`${name} on sqlite`, () => {
    let directory = '';
    let count = 0;
    const open: Database[] = [];
    beforeAll(() => {
      directory = scratchDirectory('muster-sqlite-');
    });
    afterEach(async () => {
      for (const database of open.splice(0)) await database.close();
    });
    afterAll(() => rmSync(directory, { recursive: true, force: true }));
    const newAddress = async () => join(directory, `database-${++count}.db`);
    const fresh = async (options: OpenOptions) => {
      const file = await newAddress();
      if (!observesMigrations(options)) writeFileSync(file, migratedSqlite(), { mode: 0o600 });
      return file;
    };
    suite({
      kind: 'sqlite',
      newAddress,
      async open({ at, ...options } = {}) {
        const database = await openSqlite({
          file: at ?? (await fresh(options)),
          now: () => testTime,
          onFatal: (reason) => {
            throw reason;
          },
          ...options,
        });
        open.push(database);
        return database;
      },
    });
  });
}

/**
 * Registers a suite for the behavior of several processes that share a database. Such processes can share PostgreSQL,
 * but not an SQLite file.
 */
export function describePostgres(name: string, suite: Suite): void {
  describe(`${name} on postgres`, () => {
    const shared = inject('postgres');
    const databases: Databases | null = 'missing' in shared ? null : databasesOn(shared.url);
    const open: Database[] = [];
    beforeAll(() => {
      if ('missing' in shared && process.env.CI === 'true') throw new Error(shared.missing);
    });
    beforeEach((context) => {
      if ('missing' in shared) context.skip(shared.missing);
    });
    afterEach(async () => {
      for (const database of open.splice(0)) await database.close();
    });
    afterAll(() => databases?.dropDatabases());
    const newAddress = () => databases!.createDatabase();
    const fresh = (options: OpenOptions) =>
      observesMigrations(options) || 'missing' in shared ? newAddress() : databases!.createDatabase(shared.template);
    suite({
      kind: 'postgres',
      newAddress,
      async open({ at, ...options } = {}) {
        const database = await openPostgres({
          url: at ?? (await fresh(options)),
          now: () => testTime,
          ...options,
        });
        open.push(database);
        return database;
      },
    });
  });
}
