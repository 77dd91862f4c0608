import { createIndex, createTable, type TableShape } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

const tables: Record<string, TableShape> = {
  channels: {
    columns: {
      channel_id: 'text',
      name: 'text',
      channel_type: 'text',
      key_id: 'text',
      sealed: 'text',
      created_at: 'integer',
      created_by: 'text',
      failures: 'integer',
      retry_at_ms: 'integer',
      failing_since: 'integer?',
    },
    primaryKey: ['channel_id'],
  },
  notifications: {
    columns: {
      notification_id: 'text',
      place: 'integer',
      event_id: 'text',
      event_type: 'text',
      severity: 'text',
      summary: 'text',
      timestamp_ms: 'integer',
      node_id: 'text?',
      suppressed: 'integer',
      event: 'text',
    },
    primaryKey: ['notification_id'],
    unique: ['place'],
  },
  // The key allows one delivery of a notification to a channel, and defines the order of deliveries.
  deliveries: {
    columns: {
      channel_id: 'text',
      place: 'integer',
      delivery_id: 'text',
      attempts: 'integer',
      created_at_ms: 'integer',
    },
    primaryKey: ['channel_id', 'place'],
    unique: ['delivery_id'],
    childOf: { column: 'channel_id', table: 'channels' },
  },
  notification_reads: {
    columns: { operator_id: 'text', place: 'integer' },
    primaryKey: ['operator_id', 'place'],
    childOf: { column: 'place', table: 'notifications' },
  },
  notification_watermarks: { columns: { operator_id: 'text', place: 'integer' }, primaryKey: ['operator_id'] },
};

/** Adds channels, notifications, and the outbox for their deliveries. */
export const notifications: Migration = {
  version: 5,
  name: 'notifications',
  statements: (build) => [
    ...Object.entries(tables).map(([name, shape]) => createTable(build, name, shape)),
    // Index for configurations to re-encrypt with another key.
    createIndex(build, 'channels_by_key', 'channels', ['key_id', 'channel_id']),
    createIndex(build, 'notifications_time', 'notifications', ['timestamp_ms', 'place']),
    // Indices for deliveries that have waited too long, and for a notification's deliveries.
    createIndex(build, 'deliveries_age', 'deliveries', ['created_at_ms', 'delivery_id']),
    createIndex(build, 'deliveries_place', 'deliveries', ['place']),
    createIndex(build, 'notification_reads_place', 'notification_reads', ['place']),
  ],
};
