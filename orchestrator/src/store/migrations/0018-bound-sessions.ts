import type { Migration } from './migration.ts';

/**
 * Adds a column that records whether the signed challenge for a sign-in session named this server; 0 for existing
 * sessions.
 */
export const boundSessions: Migration = {
  version: 18,
  name: 'bound sessions',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('sessions')
      .addColumn('bound', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
