import { createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/** Adds a table that records how much data each agent caused to be stored on the last day on which it reported. */
export const agentUsage: Migration = {
  version: 17,
  name: 'agent usage',
  statements: (build) => [
    createTable(build, 'agent_usage', {
      columns: { node_id: 'text', day: 'integer', bytes: 'integer', events: 'integer', hints: 'integer' },
      primaryKey: ['node_id'],
    }),
  ],
};
