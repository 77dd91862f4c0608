import type { Migration } from './migration.ts';

/** Which daily limits of an agent an event was recorded for. */
export const notifiedLimits: Migration = {
  version: 19,
  name: 'notified limits',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('agent_usage')
      .addColumn('limited', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
