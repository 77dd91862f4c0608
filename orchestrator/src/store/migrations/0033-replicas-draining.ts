import type { Migration } from './migration.ts';

/**
 * Adds a column for processes that are stopping, whose leases other processes take over. Renames the lease of the drift
 * sweep.
 */
export const replicasDraining: Migration = {
  version: 33,
  name: 'replicas draining',
  statements: ({ db, dialect }) => [
    db.schema
      .alterTable('replicas')
      .addColumn('draining', dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
    db.updateTable('leases').set({ name: 'drift' }).where('name', '=', 'drift-sweep'),
  ],
};
