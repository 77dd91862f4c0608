import type { Migration } from './migration.ts';

/** Adds a column for processes that are stopping, whose leases other processes take over. */
export const replicasDraining: Migration = {
  version: 33,
  name: 'replicas draining',
  // Earlier releases ignore the column, and insert rows with its default.
  compatibleFrom: 29,
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('replicas')
      .addColumn('draining', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
  ],
};
