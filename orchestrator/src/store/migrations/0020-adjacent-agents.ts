import { sql } from 'kysely';
import { createIndex, createTable, type TableShape } from '../create-table.ts';
import type { Migration, MigrationBuild } from './migration.ts';

const shapes: Readonly<Record<string, TableShape>> = {
  agent_state: {
    columns: {
      node_id: 'text',
      snapshot_operation_id: 'text?',
      updated_at: 'integer',
      drift_due_at: 'integer?',
      failed_apply_id: 'text?',
    },
    primaryKey: ['node_id'],
  },
  spool_ack: {
    columns: { node_id: 'text', instance_id: 'text', seq: 'integer' },
    primaryKey: ['node_id'],
  },
};

/** Copies a table to a new table without a rowid. The table's indices are lost. */
function withoutRowid(build: MigrationBuild, name: string, shape: TableShape) {
  const { db } = build;
  const former = `${name}_with_rowid`;
  const columns = Object.keys(shape.columns);
  return [
    db.schema.alterTable(name).renameTo(former),
    createTable(build, name, shape).modifyEnd(sql`, without rowid`),
    db.insertInto(name).columns(columns).expression(db.selectFrom(former).select(columns).orderBy('node_id')),
    db.schema.dropTable(former),
  ];
}

/**
 * Stores agent rows in the order of agent IDs. Runs serve agents in this order, so their transactions change few pages.
 * Rows with a rowid would be in the order in which agents enrolled. Changes nothing on PostgreSQL, which has no tables
 * without a rowid.
 */
export const adjacentAgents: Migration = {
  version: 20,
  name: 'adjacent agents',
  statements: (build) =>
    build.dialect.kind === 'postgres'
      ? []
      : [
          ...Object.entries(shapes).flatMap(([name, shape]) => withoutRowid(build, name, shape)),
          createIndex(build, 'agent_state_drift_due', 'agent_state', ['drift_due_at', 'node_id']).where(
            'drift_due_at',
            'is not',
            null,
          ),
          createIndex(build, 'agent_state_failed', 'agent_state', ['node_id', 'failed_apply_id']).where(
            'failed_apply_id',
            'is not',
            null,
          ),
        ],
};
