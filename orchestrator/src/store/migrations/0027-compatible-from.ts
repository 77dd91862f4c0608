import type { Migration } from './migration.ts';

/**
 * Adds a column for the oldest schema version whose releases can also use the schema, so that processes of two releases
 * can share a database.
 */
export const compatibleFrom: Migration = {
  version: 27,
  name: 'compatible from',
  statements: ({ db, dialect }) => [
    db.schema.alterTable('schema_version').addColumn('compatible_from', dialect.columns.integer),
  ],
};
