import type { Migration } from './migration.ts';

/** Adds a column for the precedence of an assignment's parameters. */
export const assignmentPrecedence: Migration = {
  version: 24,
  name: 'assignment precedence',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('assignments')
      .addColumn('precedence', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
