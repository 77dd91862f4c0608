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
 * A schema change to the next version. A released migration must never be changed; a new migration corrects its
 * mistakes. The statements run in one transaction with the row that records the version.
 */
export interface Migration {
  /** Positive integer; versions have no gaps. */
  readonly version: number;
  readonly name: string;
  statements(build: MigrationBuild): readonly Buildable<unknown>[];
}
