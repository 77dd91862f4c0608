import { sql } from 'kysely';
import { createIndex, createTable } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/**
 * Adds terminal sessions and, on PostgreSQL, the parent table of the sample partitions. SQLite has a separate file for
 * samples.
 */
export const terminals: Migration = {
  version: 7,
  name: 'terminals',
  statements: (build) => [
    createTable(build, 'terminal_sessions', {
      columns: {
        session_id: 'text',
        node_id: 'text',
        operator_id: 'text',
        status: 'text',
        opened_at: 'integer',
        closed_at: 'integer?',
      },
      primaryKey: ['session_id'],
    }),
    // Index for terminal sessions by status, newest first.
    createIndex(build, 'terminal_sessions_status', 'terminal_sessions', ['status', 'session_id']),
    ...(build.dialect.kind === 'postgres' ? [sql.raw(samplesTable)] : []),
  ],
};

const samplesTable = `create table samples (
  node_id text collate "C" not null,
  collected_at bigint not null,
  cpu_usage double precision,
  memory_total bigint,
  memory_used bigint,
  swap_used bigint,
  disk_total bigint,
  disk_used bigint,
  load1 double precision,
  net_rx_bytes bigint,
  net_tx_bytes bigint,
  processes bigint,
  uptime bigint,
  primary key (node_id, collected_at)
) partition by range (collected_at)`;
