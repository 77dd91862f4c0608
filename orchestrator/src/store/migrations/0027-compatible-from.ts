import type { Migration } from './migration.ts';

/** Adds which earlier releases can use each schema, for processes of two releases on one database. */
export const compatibleFrom: Migration = {
  version: 27,
  name: 'compatible from',
  statements: ({ db, dialect }) => [
    db.schema.alterTable('schema_version').addColumn('compatible_from', dialect.columns.integer),
  ],
};
