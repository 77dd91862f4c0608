import type { Migration } from './migration.ts';

/**
 * Adds columns for the status that each replica reports with its heartbeats: whether it is ready, and a digest of its
 * configuration.
 */
export const replicaStatus: Migration = {
  version: 35,
  name: 'replica status',
  // Earlier releases ignore the columns, and leave them null.
  compatibleFrom: 29,
  statements: ({ db, dialect }) => [
    db.schema.alterTable('replicas').addColumn('ready', dialect.columns.integer),
    db.schema.alterTable('replicas').addColumn('config_digest', dialect.columns.text),
  ],
};
