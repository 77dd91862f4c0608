import type { Kysely } from 'kysely';
import type { Buildable, Dialect } from '../dialect.ts';

/**
 * Builders for migration statements. The schema is untyped, because `Schema` describes the tables after the newest
 * migration.
 */
export interface MigrationBuild {
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly db: Kysely<any>;
  readonly dialect: Dialect;
}

/**
 * A schema change to the next version. A released migration must never be changed; instead, a new migration corrects
 * its mistakes. The statements run in one transaction with the row that records the version.
 */
export interface Migration {
  /** Positive integer. Versions are consecutive. */
  readonly version: number;
  readonly name: string;
  /**
   * The oldest schema version whose releases can also use the database after this migration. By default, earlier
   * releases refuse the database. Only a migration after version 27 can set it, because version 27 adds its column.
   */
  readonly compatibleFrom?: number;
  statements(build: MigrationBuild): readonly Buildable<unknown>[];
}
