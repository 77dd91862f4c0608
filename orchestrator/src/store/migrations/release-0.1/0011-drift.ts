import { createIndex, createTable } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/** Adds a column for the due time of each machine's next drift check, and a table of the machines that have drifted. */
export const drift: Migration = {
  version: 11,
  name: 'drift',
  statements: (build) => {
    const { db, dialect } = build;
    const lastConclusive = db
      .selectFrom('drift_records')
      .select(({ fn }) => fn.max('drift_id').as('drift_id'))
      .where('status', 'in', ['in_sync', 'drifted'])
      .where('trigger', '!=', 'audit')
      .groupBy('node_id');
    return [
      // Null until the first apply, and between a missed check and the agent's next connection.
      db.schema.alterTable('agent_state').addColumn('drift_due_at', dialect.columns.integer),
      createIndex(build, 'agent_state_drift_due', 'agent_state', ['drift_due_at', 'node_id']).where(
        'drift_due_at',
        'is not',
        null,
      ),
      // Index for open drift checks that the schedule requested.
      createIndex(build, 'operations_scheduled', 'operations', ['trigger', 'operation_id'])
        .where('trigger', '=', 'schedule')
        .where('status', 'in', ['queued', 'running']),
      createTable(build, 'drift_states', {
        columns: { node_id: 'text', scope: 'text', drifted: 'text?', since: 'integer' },
        primaryKey: ['node_id', 'scope'],
      }),
      // Adds the machines that had drifted before the migration, without details.
      db
        .insertInto('drift_states')
        .columns(['node_id', 'scope', 'drifted', 'since'])
        .expression(
          db
            .selectFrom('drift_records')
            .select((e) => [
              'node_id',
              e.val('').as('scope'),
              e.cast<string | null>(e.lit(null), 'text').as('drifted'),
              'checked_at as since',
            ])
            .where('status', '=', 'drifted')
            .where('drift_id', 'in', lastConclusive),
        ),
    ];
  },
};
