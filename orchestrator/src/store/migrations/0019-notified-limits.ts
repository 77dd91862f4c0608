import type { Migration } from './migration.ts';

/** Adds, to each agent's usage, the daily limits for which an event was recorded. */
export const notifiedLimits: Migration = {
  version: 19,
  name: 'notified limits',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('agent_usage')
      .addColumn('limited', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
