import type { Migration } from './migration.ts';

/** Adds a column for the names of the modules that a module's newest revision requires. */
export const moduleRequires: Migration = {
  version: 25,
  name: 'module requires',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('modules')
      .addColumn('requires', dialect.columns.text, (column) => column.notNull().defaultTo('[]')),
  ],
};
