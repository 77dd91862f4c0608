import type { Migration } from './migration.ts';

/** Adds a column that records whether an apply put the resource in place. */
export const appliedState: Migration = {
  version: 16,
  name: 'applied state',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('applied_resources')
      .addColumn('in_place', dialect.columns.integer, (c) => c.notNull().defaultTo(0)),
    // Earlier releases did not record whether an `unapplied` resource was ever in place. The next apply sets the flag.
    db.updateTable('applied_resources').set({ in_place: 1 }).where('state', '!=', 'unapplied'),
  ],
};
