import { createIndex } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/** Adds columns to detect lost agents, new addresses, and clones. */
export const presence: Migration = {
  version: 8,
  name: 'presence',
  statements: (build) => {
    const { db, dialect } = build;
    const agents = () => db.schema.alterTable('agents');
    return [
      agents().addColumn('lost_at', dialect.columns.integer),
      agents().addColumn('remote_ip', dialect.columns.text),
      agents().addColumn('clone_seen_at', dialect.columns.integer),
      // Index for agents that may be lost, least recently seen first.
      createIndex(build, 'agents_unseen', 'agents', ['status', 'last_seen_at', 'node_id']).where('lost_at', 'is', null),
    ];
  },
};
