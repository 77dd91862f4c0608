import { createIndex, createTable } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/** Adds the audit log chain, and a table of leases for work that only one process may do at a time. */
export const auditChain: Migration = {
  version: 2,
  name: 'audit-chain',
  statements: (build) => {
    const { db, dialect } = build;
    const index = (name: string, columns: readonly string[]) => createIndex(build, name, 'audit_events', columns);
    const link = (name: string) => db.insertInto('audit_chain').values({ name, place: 0, hash: '0'.repeat(64) });
    return [
      db.schema.alterTable('audit_events').addColumn('place', dialect.columns.integer),
      db.schema.alterTable('audit_events').addColumn('hash', dialect.columns.text),
      // Index for events that are not in the chain yet. They are few, even in a long log.
      index('audit_events_unplaced', ['seq']).where('place', 'is', null),
      // The index is not unique, because a forged row must not prevent further additions to the chain. Verification
      // detects such a row.
      index('audit_events_place', ['place', 'seq']).where('place', 'is not', null),
      // The log is read newest first, within a time range, and with any filter.
      ...['type', 'category', 'actor', 'target'].map((name) => db.schema.dropIndex(`audit_events_${name}`)),
      index('audit_events_type', ['event_type', 'timestamp_ms', 'seq']),
      index('audit_events_category', ['category', 'timestamp_ms', 'seq']),
      index('audit_events_actor', ['actor_id', 'timestamp_ms', 'seq']),
      index('audit_events_target', ['target_id', 'timestamp_ms', 'seq']),
      createTable(build, 'audit_chain', {
        columns: { name: 'text', place: 'integer', hash: 'text' },
        primaryKey: ['name'],
      }),
      link('head'),
      link('anchor'),
      link('cut'),
      createTable(build, 'leases', {
        columns: { name: 'text', holder: 'text', token: 'integer', expires_ms: 'integer' },
        primaryKey: ['name'],
      }),
    ];
  },
};
