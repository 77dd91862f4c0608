import type { Migration } from './migration.ts';

/** Adds to sign-in sessions whether the signed challenge named this server; unknown for older sessions. */
export const boundSessions: Migration = {
  version: 18,
  name: 'bound sessions',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('sessions')
      .addColumn('bound', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
