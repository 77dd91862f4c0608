import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe } from 'vitest';
import type { Database } from '../src/store/database.ts';
import type { DatabaseKind } from '../src/store/dialect.ts';
import { openPostgres, type PostgresOptions } from '../src/store/postgres.ts';
import { openSqlite, type SqliteOptions } from '../src/store/sqlite.ts';
import { PostgresMissing, type PostgresServer, startPostgres } from './postgres-server.ts';
import { scratchDirectory } from './scratch.ts';

/** The time that databases under test believe it is, in Unix seconds. */
export const testTime = 1_700_000_000;

/** Where a database is: a file, or a URL. What is opened at one place twice is the same database. */
export type Place = string;

export interface DatabaseFixture {
  readonly kind: DatabaseKind;
  /** A place for a new, empty database. */
  place(): Promise<Place>;
  /** Opens a database, at a new place unless one is given; it is closed after the test. */
  open(options?: Partial<SqliteOptions & PostgresOptions> & { at?: Place }): Promise<Database>;
}

/**
 * Registers a suite twice, once for each database. Where PostgreSQL cannot run, its half is skipped with the reason,
 * or fails under `CI=true`.
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
    let server: PostgresServer | undefined;
    let missing: PostgresMissing | undefined;
    const open: Database[] = [];
    beforeAll(async () => {
      try {
        server = await startPostgres();
      } catch (error) {
        if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
        missing = error;
      }
    });
    beforeEach((context) => {
      if (missing) context.skip(missing.message);
    });
    afterEach(async () => {
      for (const database of open.splice(0)) await database.close();
    });
    afterAll(() => server?.stop());
    const place = () => server!.createDatabase();
    suite({
      kind: 'postgres',
      place,
      async open({ at, ...options } = {}) {
        const database = await openPostgres({ url: at ?? (await place()), now: () => testTime, ...options });
        open.push(database);
        return database;
      },
    });
  });
}
