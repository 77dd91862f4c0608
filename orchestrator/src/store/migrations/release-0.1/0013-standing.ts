import { createIndex } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/** Adds accepted drift, and columns and indices for finding agents that need attention without reading every agent. */
export const standing: Migration = {
  version: 13,
  name: 'standing',
  statements: (build) => {
    const { db, dialect } = build;
    const { text } = dialect.columns;
    const drift = () => db.schema.alterTable('drift_states');
    const ended = ['succeeded', 'failed', 'interrupted', 'expired'];
    return [
      drift().addColumn('drift_id', text),
      drift().addColumn('fingerprints', text),
      drift().addColumn('accepted', text),
      db.schema.alterTable('drift_records').addColumn('accepted', text),
      // Sets the record that found the drift from the applied state. For audits, the record is unknown, because earlier
      // releases did not store it separately.
      db
        .updateTable('drift_states')
        .set((e) => ({
          drift_id: e
            .selectFrom('drift_records')
            .select('drift_records.drift_id')
            .whereRef('drift_records.node_id', '=', 'drift_states.node_id')
            .where('drift_records.status', '=', 'drifted')
            .where('drift_records.trigger', '!=', 'audit')
            .orderBy('drift_records.drift_id', 'desc')
            .limit(1),
        }))
        .where('scope', '=', ''),
      db.schema.alterTable('agent_state').addColumn('failed_apply_id', text),
      // Sets each agent's most recently finished apply. The next statement clears it if the apply succeeded.
      db.updateTable('agent_state').set((e) => ({
        failed_apply_id: e
          .selectFrom('operations')
          .select('operations.operation_id')
          .whereRef('operations.node_id', '=', 'agent_state.node_id')
          .where('operations.kind', '=', 'apply')
          .where('operations.status', 'in', ended)
          .orderBy('operations.operation_id', 'desc')
          .limit(1),
      })),
      db
        .updateTable('agent_state')
        .set({ failed_apply_id: null })
        .where((w) =>
          w.exists(
            w
              .selectFrom('operations')
              .select('operations.operation_id')
              .whereRef('operations.operation_id', '=', 'agent_state.failed_apply_id')
              .where('operations.status', '=', 'succeeded'),
          ),
        ),
      createIndex(build, 'agent_state_failed', 'agent_state', ['node_id', 'failed_apply_id']).where(
        'failed_apply_id',
        'is not',
        null,
      ),
      createIndex(build, 'applied_resources_off', 'applied_resources', ['node_id', 'state']).where(
        'state',
        '!=',
        'applied',
      ),
      createIndex(build, 'agents_lost', 'agents', ['status', 'lost_at', 'node_id']).where('lost_at', 'is not', null),
      createIndex(build, 'secrets_by_expiry', 'secrets', ['expires_at_ms', 'name']).where(
        'expires_at_ms',
        'is not',
        null,
      ),
    ];
  },
};
