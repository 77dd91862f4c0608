import type { Migration } from './migration.ts';

/** Adds the names of the modules that the newest revision of a module requires. */
export const moduleRequires: Migration = {
  version: 25,
  name: 'module requires',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('modules')
      .addColumn('requires', dialect.columns.text, (column) => column.notNull().defaultTo('[]')),
  ],
};
