import type { Kysely } from 'kysely';
import type { Buildable, Dialect } from '../dialect.ts';

/**
 * Builders for the statements of a migration. The schema is untyped: a migration outlives the tables it was written
 * for.
 */
export interface MigrationBuild {
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly db: Kysely<any>;
  readonly dialect: Dialect;
}

/**
 * A step of the schema, forward only. A released migration is never changed; a later one fixes it. Its statements are
 * data and run in one transaction with the row that records the version.
 */
export interface Migration {
  /** 1, 2, 3 … without gaps. */
  readonly version: number;
  readonly name: string;
  statements(build: MigrationBuild): readonly Buildable<unknown>[];
}
