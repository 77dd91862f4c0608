import type { Migration } from './migration.ts';

/** Whether the signature that opened a session named this server; of older sessions nobody knows. */
export const boundSessions: Migration = {
  version: 18,
  name: 'bound sessions',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('sessions')
      .addColumn('bound', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
