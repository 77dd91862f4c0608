import type { Migration } from './migration.ts';

/** Which rows of applied state stand for something that an apply put in place, whatever became of later applies. */
export const appliedState: Migration = {
  version: 16,
  name: 'applied state',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('applied_resources')
      .addColumn('in_place', dialect.columns.integer, (c) => c.notNull().defaultTo(0)),
    // Earlier releases do not say whether what is `unapplied` was ever in place: the next apply does.
    db.updateTable('applied_resources').set({ in_place: 1 }).where('state', '!=', 'unapplied'),
  ],
};
