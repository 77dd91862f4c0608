import type { ExpressionBuilder } from 'kysely';
import { defineQuery } from './query.ts';
import type { Schema } from './schema.ts';

/** Queries that delete old data in batches. */

/**
 * Payloads that are not needed by an open operation, by an operation that ended after `since`, or by the last apply of
 * a machine.
 */
export const unneededPayloads = defineQuery('payloads/unneeded', (db, p: { since: number; limit: number }) =>
  db
    .selectFrom('operation_payloads')
    .select('digest')
    .where((w) => w.not(w.exists(needing(w, p.since))))
    .limit(p.limit),
);

/** Deletes payloads, except those that are needed again. */
export const deletePayloads = defineQuery(
  'payloads/delete',
  (db, p: { digests: readonly string[]; since: number }, d) =>
    db
      .deleteFrom('operation_payloads')
      .where(d.isIn('digest', p.digests))
      .where((w) => w.not(w.exists(needing(w, p.since)))),
);

const needing = (from: ExpressionBuilder<Schema, 'operation_payloads'>, since: number) =>
  from
    .selectFrom('operations')
    .select('operations.operation_id')
    .whereRef('operations.payload_digest', '=', 'operation_payloads.digest')
    .where((w) =>
      w.or([
        w('operations.finished_at', 'is', null),
        w('operations.finished_at', '>', since),
        // Drift checks compare the machine with this payload. Its secrets must also be known, so that they can be
        // redacted from reports.
        w.exists(
          w
            .selectFrom('agent_state')
            .select('agent_state.node_id')
            .whereRef('agent_state.node_id', '=', 'operations.node_id')
            .whereRef('agent_state.snapshot_operation_id', '=', 'operations.operation_id'),
        ),
      ]),
    );

/** The oldest drift records before a time, except those of current drift, which an operator may still accept. */
export const oldDriftRecords = defineQuery('drift/old', (db, p: { before: number; limit: number }) =>
  db
    .selectFrom('drift_records')
    .select('drift_id')
    .where('checked_at', '<', p.before)
    .where((w) =>
      w.not(
        w.exists(
          w
            .selectFrom('drift_states')
            .select('drift_states.node_id')
            .whereRef('drift_states.node_id', '=', 'drift_records.node_id')
            .whereRef('drift_states.drift_id', '=', 'drift_records.drift_id'),
        ),
      ),
    )
    .orderBy('checked_at')
    .orderBy('drift_id')
    .limit(p.limit),
);

export const deleteDriftRecords = defineQuery('drift/delete', (db, p: { ids: readonly string[] }, d) =>
  db.deleteFrom('drift_records').where(d.isIn('drift_id', p.ids)),
);

export const deleteLatestDrift = defineQuery('drift/delete latest by record', (db, p: { ids: readonly string[] }, d) =>
  db.deleteFrom('latest_drift').where(d.isIn('drift_id', p.ids)),
);

/** A page of operation IDs, oldest first. */
export const operationIds = defineQuery('operations/ids', (db, p: { after: string; below: string; limit: number }) =>
  db
    .selectFrom('operations')
    .select('operation_id')
    .where('operation_id', '>', p.after)
    .where('operation_id', '<', p.below)
    .orderBy('operation_id')
    .limit(p.limit),
);

/** Deletes operations and their results, if they ended before a time and no applied state refers to them. */
export const deleteOperations = defineQuery(
  'operations/delete',
  (db, p: { ids: readonly string[]; before: number }, d) =>
    db
      .deleteFrom('operations')
      .where(d.isIn('operation_id', p.ids))
      .where('finished_at', '<', p.before)
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('applied_resources')
              .select('applied_resources.key')
              .whereRef('applied_resources.node_id', '=', 'operations.node_id')
              .whereRef('applied_resources.operation_id', '=', 'operations.operation_id'),
          ),
        ),
      )
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('agent_state')
              .select('agent_state.node_id')
              .whereRef('agent_state.node_id', '=', 'operations.node_id')
              .whereRef('agent_state.snapshot_operation_id', '=', 'operations.operation_id'),
          ),
        ),
      )
      // Retains the operations of a run as long as the run itself.
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('runs')
              .select('runs.run_id')
              .whereRef('runs.run_id', '=', 'operations.run_id')
              .where((r) => r.or([r('runs.finished_at', 'is', null), r('runs.finished_at', '>=', p.before)])),
          ),
        ),
      ),
);

/** Deletes runs that ended before a time, and their outcomes. */
export const deleteRuns = defineQuery('runs/delete', (db, p: { ids: readonly string[]; before: number }, d) =>
  db.deleteFrom('runs').where(d.isIn('run_id', p.ids)).where('finished_at', '<', p.before),
);

export const runIds = defineQuery('runs/ids', (db, p: { after: string; below: string; limit: number }) =>
  db
    .selectFrom('runs')
    .select('run_id')
    .where('run_id', '>', p.after)
    .where('run_id', '<', p.below)
    .orderBy('run_id')
    .limit(p.limit),
);
