import type { Kysely } from 'kysely';
import type { Buildable, Dialect } from '../dialect.ts';

/**
 * Builders for the statements of a migration. The schema is untyped, because later migrations change the tables that a
 * migration was written for.
 */
export interface MigrationBuild {
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly db: Kysely<any>;
  readonly dialect: Dialect;
}

/**
 * A change of the schema to the next version. A released migration is never changed; a later migration fixes its
 * mistakes. The statements are data, and run in one transaction with the row that records the version.
 */
export interface Migration {
  /** 1, 2, 3 … without gaps. */
  readonly version: number;
  readonly name: string;
  statements(build: MigrationBuild): readonly Buildable<unknown>[];
}
