import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, inject } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import type { DatabaseKind } from '../../src/store/dialect.ts';
import { openPostgres, type PostgresOptions } from '../../src/store/postgres/postgres.ts';
import { openSqlite, type SqliteOptions } from '../../src/store/sqlite/sqlite.ts';
import { scratchDirectory } from '../scratch.ts';
import { testTime } from './database-time.ts';
import { type Databases, databasesOn } from './postgres-databases.ts';

export { testTime };

/** The location of a database: a file or a URL. Opening one location twice opens the same database. */
export type Place = string;

export interface DatabaseFixture {
  readonly kind: DatabaseKind;
  /** Creates a location for a new, empty database. */
  place(): Promise<Place>;
  /** Opens a database, at a new location unless one is given. It is closed after the test. */
  open(options?: Partial<SqliteOptions & PostgresOptions> & { at?: Place }): Promise<Database>;
}

/**
 * Registers a suite once for each database. If PostgreSQL cannot run, its half is skipped with the reason, or fails
 * with `CI=true`.
 */
export function describeDatabases(name: string, suite: (fixture: DatabaseFixture) => void): void {
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
    const place = async () => join(directory, `database-${++count}.db`);
    suite({
      kind: 'sqlite',
      place,
      async open({ at, ...options } = {}) {
        const database = await openSqlite({
          file: at ?? (await place()),
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
    const place = () => databases!.createDatabase();
    // A database with the current schema is copied from a template. Tests of migrations get an empty one.
    const fresh = ({ migrations, onMigrated, onProgress }: Partial<PostgresOptions>) =>
      migrations || onMigrated || onProgress || 'missing' in shared
        ? place()
        : databases!.createDatabase(shared.template);
    suite({
      kind: 'postgres',
      place,
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
