import { sql } from 'kysely';
import { createIndex, createTable } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/** Adds maintenance windows, web login codes, each agent's latest drift, and indices for retention. */
export const windows: Migration = {
  version: 4,
  name: 'windows',
  statements: (build) => [
    createTable(build, 'maintenance_windows', {
      columns: {
        id: 'text',
        starts_at: 'integer',
        ends_at: 'integer',
        reason: 'text',
        selector: 'text?',
        created_at: 'integer',
        created_by: 'text',
      },
      primaryKey: ['id'],
    }),
    // Index for windows that have not ended, which are few.
    createIndex(build, 'maintenance_windows_end', 'maintenance_windows', ['ends_at', 'starts_at']),
    createIndex(build, 'maintenance_windows_start', 'maintenance_windows', ['starts_at', 'id']),
    createTable(build, 'web_login_codes', {
      columns: {
        code_hash: 'text',
        operator_id: 'text',
        session_hash: 'text',
        signed_in_at: 'integer',
        expires_at: 'integer',
      },
      primaryKey: ['code_hash'],
    }),
    createIndex(build, 'web_login_codes_expiry', 'web_login_codes', ['expires_at']),
    // Index for checking whether a payload is still needed by an open or recently ended operation.
    createIndex(build, 'operations_payload', 'operations', ['payload_digest', 'finished_at']).where(
      'payload_digest',
      'is not',
      null,
    ),
    createIndex(build, 'enrolment_tokens_expiry', 'enrolment_tokens', ['expires_at']),
    // Indices for the oldest drift records, which are deleted first, and for an agent's drift records by status.
    createIndex(build, 'drift_records_checked', 'drift_records', ['checked_at', 'drift_id']),
    createIndex(build, 'drift_records_node_status', 'drift_records', ['node_id', 'status', 'drift_id']),
    createTable(build, 'latest_drift', {
      columns: { node_id: 'text', drift_id: 'text', status: 'text' },
      primaryKey: ['node_id'],
    }),
    createIndex(build, 'latest_drift_order', 'latest_drift', ['drift_id']),
    createIndex(build, 'latest_drift_status', 'latest_drift', ['status', 'drift_id']),
    sql`insert into latest_drift (node_id, drift_id, status)
      select node_id, drift_id, status from drift_records
      where drift_id in (select max(drift_id) from drift_records group by node_id)`,
  ],
};
