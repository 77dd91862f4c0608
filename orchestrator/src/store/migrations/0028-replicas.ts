import { createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/** Adds the processes that share the database. Leases live as long as their holder, so they no longer expire. */
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
