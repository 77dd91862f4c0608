import type { OperationStatus, Summary } from '@muster/protocol';
import type { JsonText } from '../../json-text.ts';
import { defineQuery } from '../../query.ts';

/** Time at which the earliest open operation was dispatched; null if no open operation has been dispatched. */
export const oldestSent = defineQuery('operations/oldest sent', (db) =>
  db
    .selectFrom('operations')
    .select((e) => e.fn.min('dispatched_at').as('dispatched_at'))
    .where('status', 'in', ['queued', 'running']),
);

/**
 * Deletes the open operation of a drift check that has ended. Its result, if there is one, is stored as a drift record.
 */
export const deleteOpenOperation = defineQuery('operations/delete open', (db, p: { operation_id: string }) =>
  db.deleteFrom('operations').where('operation_id', '=', p.operation_id).where('status', 'in', ['queued', 'running']),
);

export const endAllOpen = defineQuery(
  'operations/end all',
  (db, p: { node_id: string; status: OperationStatus; finished_at: number; error: string }) =>
    db
      .updateTable('operations')
      .set({ status: p.status, finished_at: p.finished_at, error: p.error })
      .where('node_id', '=', p.node_id)
      .where('status', 'in', ['queued', 'running'])
      .returning(['operation_id', 'run_id']),
);

/** Returns a row if the agent has an open operation other than the given ones. */
export const openBeside = defineQuery(
  'operations/open beside',
  (db, p: { node_id: string; ids: readonly string[] }, d) =>
    db
      .selectFrom('operations')
      .select('operation_id')
      .where('node_id', '=', p.node_id)
      .where('status', 'in', ['queued', 'running'])
      .where(d.isNotIn('operation_id', p.ids))
      .limit(1),
);

/** Returns a row if any of the given operations has ended. */
export const endedAmong = defineQuery('operations/ended among', (db, p: { ids: readonly string[] }, d) =>
  db
    .selectFrom('operations')
    .select('operation_id')
    .where(d.isIn('operation_id', p.ids))
    .where('status', 'not in', ['queued', 'running'])
    .limit(1),
);

/**
 * Sets the final status of the run results for an agent's open operations. Must precede the statement that ends the
 * operations.
 */
export const endOpenRunResults = defineQuery(
  'runs/end results of agent',
  (db, p: { node_id: string; status: OperationStatus; error: string }) =>
    db
      .updateTable('run_results')
      .set({ status: p.status, error: p.error })
      .where('node_id', '=', p.node_id)
      .where('operation_id', 'in', (e) =>
        e
          .selectFrom('operations')
          .select('operations.operation_id')
          .where('operations.node_id', '=', p.node_id)
          .where('operations.status', 'in', ['queued', 'running']),
      ),
);

/** Operations that are past their deadline and whose agents were last seen before `seen_before`. */
export const lostOperations = defineQuery(
  'operations/lost',
  (db, p: { now: number; seen_before: number; limit: number }) =>
    db
      .selectFrom('operations')
      .innerJoin('agents', 'agents.node_id', 'operations.node_id')
      .select([
        'operations.operation_id',
        'operations.node_id',
        'operations.kind',
        'operations.run_id',
        'operations.requested_by',
      ])
      .where('operations.status', 'in', ['queued', 'running'])
      .where('operations.dispatched_at', 'is not', null)
      .where('operations.expires_at', '<=', p.now)
      .where('agents.last_seen_at', '<=', p.seen_before)
      .limit(p.limit),
);

/** For preconditions: returns a row if the agent was last seen before a time. */
export const stillUnseen = defineQuery('operations/still unseen', (db, p: { node_id: string; seen_before: number }) =>
  db.selectFrom('agents').select('node_id').where('node_id', '=', p.node_id).where('last_seen_at', '<=', p.seen_before),
);

export const oldestOpenOperations = defineQuery('operations/oldest of all open', (db, p: { limit: number }) =>
  db
    .selectFrom('operations')
    .select(['operation_id', 'node_id', 'kind', 'run_id', 'requested_by'])
    .where('status', 'in', ['queued', 'running'])
    .orderBy('operation_id')
    .limit(p.limit),
);

export const endOperation = defineQuery(
  'operations/end',
  (
    db,
    p: {
      operation_id: string;
      status: OperationStatus;
      started_at: number | null;
      finished_at: number;
      summary: JsonText<Summary> | null;
      error: string | null;
    },
    d,
  ) =>
    db
      .updateTable('operations')
      .set((e) => ({
        status: p.status,
        started_at: e.fn.coalesce('started_at', d.typed(p.started_at, 'integer')),
        finished_at: p.finished_at,
        summary: p.summary,
        error: p.error,
      }))
      .where('operation_id', '=', p.operation_id)
      .where('status', 'in', ['queued', 'running']),
);

/** Ends a queued operation. Changes nothing if it was dispatched. */
export const endUndispatched = defineQuery(
  'operations/end undispatched',
  (db, p: { operation_id: string; status: OperationStatus; finished_at: number; error: string | null }) =>
    db
      .updateTable('operations')
      .set({ status: p.status, finished_at: p.finished_at, error: p.error })
      .where('operation_id', '=', p.operation_id)
      .where('status', '=', 'queued')
      .where('dispatched_at', 'is', null),
);

/** Requests that an open, dispatched operation be canceled. */
export const requestCancel = defineQuery('operations/request cancel', (db, p: { operation_id: string; now: number }) =>
  db
    .updateTable('operations')
    .set({ cancel_requested_at: p.now })
    .where('operation_id', '=', p.operation_id)
    .where('status', 'in', ['queued', 'running'])
    .where('dispatched_at', 'is not', null),
);

export const cancelRequests = defineQuery('operations/cancel requests', (db, p: { node_id: string }) =>
  db
    .selectFrom('operations')
    .select('operation_id')
    .where('node_id', '=', p.node_id)
    .where('status', 'in', ['queued', 'running'])
    .where('cancel_requested_at', 'is not', null)
    .where('dispatched_at', 'is not', null),
);

/** Operations that expired before they were dispatched. */
export const expiredQueued = defineQuery('operations/expired', (db, p: { now: number; limit: number }) =>
  db
    .selectFrom('operations')
    .select(['operation_id', 'node_id', 'run_id', 'kind', 'requested_by'])
    .where('status', '=', 'queued')
    .where('dispatched_at', 'is', null)
    .where('expires_at', '<=', p.now)
    .limit(p.limit),
);
