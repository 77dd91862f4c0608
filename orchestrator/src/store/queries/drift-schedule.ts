import { defineQuery } from '../query.ts';

/** Due times of drift checks, in Unix seconds. */

/**
 * Agents that are due for a check, longest overdue first, with the columns that determine whether they are checked. The
 * caller must set their next due time, because the query would otherwise return them again.
 */
export const dueForDrift = defineQuery('drift/due', (db, p: { now: number; limit: number }) =>
  db
    .selectFrom('agent_state')
    .leftJoin('agents', 'agents.node_id', 'agent_state.node_id')
    .leftJoin('latest_drift', 'latest_drift.node_id', 'agent_state.node_id')
    .leftJoin('drift_records', 'drift_records.drift_id', 'latest_drift.drift_id')
    .select([
      'agent_state.node_id',
      'agent_state.drift_due_at',
      'agent_state.updated_at',
      'agent_state.snapshot_operation_id',
      'agents.status',
      'agents.connected_at',
      'latest_drift.status as latest_status',
      'drift_records.snapshot_operation_id as latest_snapshot',
    ])
    .select((e) =>
      e
        .selectFrom('operations')
        .select('operations.operation_id')
        .whereRef('operations.node_id', '=', 'agent_state.node_id')
        .where('operations.status', 'in', ['queued', 'running'])
        .limit(1)
        .as('open_operation'),
    )
    .where('agent_state.drift_due_at', '<=', p.now)
    .orderBy('agent_state.drift_due_at')
    .orderBy('agent_state.node_id')
    .limit(p.limit),
);

/** Open drift checks that the schedule triggered. */
export const scheduledChecks = defineQuery('drift/scheduled', (db) =>
  db
    .selectFrom('operations')
    .select(['operation_id', 'node_id'])
    .where('trigger', '=', 'schedule')
    .where('status', 'in', ['queued', 'running'])
    .orderBy('operation_id'),
);

/**
 * Sets the due time; null until the agent reconnects. Changes nothing if the due time has changed since it was read.
 */
export const setDriftDue = defineQuery(
  'drift/set due',
  (db, p: { node_id: string; seen: number; due_at: number | null }) =>
    db
      .updateTable('agent_state')
      .set({ drift_due_at: p.due_at })
      .where('node_id', '=', p.node_id)
      .where('drift_due_at', '=', p.seen),
);

/** Makes an agent's missed check due now. Called when the agent reconnects. */
export const missedDriftDue = defineQuery('drift/missed due', (db, p: { node_id: string; now: number }) =>
  db
    .updateTable('agent_state')
    .set({ drift_due_at: p.now })
    .where('node_id', '=', p.node_id)
    .where('drift_due_at', 'is', null)
    .where('snapshot_operation_id', 'is not', null),
);

/** Makes the agent due for another check. Called after a check without a result. */
export const driftDueAgain = defineQuery('drift/due again', (db, p: { node_id: string; now: number }) =>
  db
    .updateTable('agent_state')
    .set({ drift_due_at: p.now })
    .where('node_id', '=', p.node_id)
    .where('snapshot_operation_id', 'is not', null),
);

/**
 * Makes agents due now if their due time is after `latest`, which happens after the interval was shortened or the clock
 * was wrong.
 */
export const pullInDriftDue = defineQuery('drift/pull in due', (db, p: { now: number; latest: number }) =>
  db.updateTable('agent_state').set({ drift_due_at: p.now }).where('drift_due_at', '>', p.latest),
);
