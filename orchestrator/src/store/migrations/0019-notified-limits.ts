import type { Migration } from './migration.ts';

/** Adds a column to `agent_usage` that records which daily limits have been reported as events. */
export const notifiedLimits: Migration = {
  version: 19,
  name: 'notified limits',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('agent_usage')
      .addColumn('limited', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
