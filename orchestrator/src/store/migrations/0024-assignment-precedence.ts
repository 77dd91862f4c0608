import type { Migration } from './migration.ts';

/** Adds the precedence of parameters from assignments. */
export const assignmentPrecedence: Migration = {
  version: 24,
  name: 'assignment precedence',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('assignments')
      .addColumn('precedence', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
