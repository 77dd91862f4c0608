import type { Migration } from './migration.ts';
import { createIndex, createTable } from './table.ts';

/** Maintenance windows, and codes to sign in on the web. */
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
    // Those that are not over: few, however many there were.
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
    // What is queued or open of an operation keeps the payload that it names.
    createIndex(build, 'operations_payload', 'operations', ['payload_digest', 'status']).where(
      'payload_digest',
      'is not',
      null,
    ),
    // Records by age, to delete the oldest; and their agents' newest by their status.
    createIndex(build, 'drift_records_checked', 'drift_records', ['checked_at', 'drift_id']),
    createIndex(build, 'drift_records_node_status', 'drift_records', ['node_id', 'status', 'drift_id']),
  ],
};
