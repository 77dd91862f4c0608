import { createIndex, createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/**
 * Adds columns and tables for data that replicas share: which agents are connected to each replica, and the fleet's
 * keys.
 */
export const linksOfReplicas: Migration = {
  version: 34,
  name: 'links of replicas',
  // Earlier releases ignore the columns and tables, and insert rows with the defaults.
  compatibleFrom: 29,
  statements: (build) => [
    build.db.schema
      .alterTable('agents')
      .addColumn('link_change', build.dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
    createIndex(build, 'agents_link_change', 'agents', ['link_change']),
    build.db.schema.alterTable('agents').addColumn('link_instance', build.dialect.columns.text),
    build.db.schema.alterTable('agents').addColumn('link_probe', build.dialect.columns.text),
    build.db.schema.alterTable('terminal_sessions').addColumn('home', build.dialect.columns.text),
    createTable(build, 'replica_contacts', {
      columns: { incarnation: 'text', at: 'integer', contacts: 'bytes' },
      primaryKey: ['incarnation'],
    }),
    createTable(build, 'replica_keys', {
      columns: { kind: 'text', fingerprint: 'text' },
      primaryKey: ['kind'],
    }),
  ],
};
