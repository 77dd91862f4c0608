import { createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/**
 * Adds a table of the processes that share the database. Leases no longer expire; they are valid as long as their
 * holder is alive.
 */
export const replicas: Migration = {
  version: 28,
  name: 'replicas',
  statements: (build) => [
    createTable(build, 'replicas', {
      columns: { incarnation: 'text', name: 'text', version: 'text', started_at: 'integer', beat: 'integer' },
      primaryKey: ['incarnation'],
    }),
    build.db.schema.alterTable('leases').dropColumn('expires_ms'),
  ],
};
