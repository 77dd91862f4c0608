import { defineQuery } from '../../query.ts';

/**
 * An agent's two oldest open operations. Operations run in order, so only the first can be running. Skips operations
 * that expired before they were dispatched.
 */
export const oldestOpen = defineQuery('operations/oldest open', (db, p: { node_id: string; now: number }) =>
  db
    .selectFrom('operations')
    .leftJoin('agents', 'agents.node_id', 'operations.node_id')
    .select([
      'operations.operation_id',
      'operations.node_id',
      'operations.kind',
      'operations.status',
      'operations.modules',
      'operations.requested_by',
      'operations.run_id',
      'operations.dispatched_at',
      'operations.trigger',
      'operations.snapshot_operation_id',
      'operations.payload_digest',
      'operations.plan_id',
      'operations.revisions',
      'agents.status as agent_status',
    ])
    .select((e) => e.fn.coalesce('agents.name', 'agents.initial_hostname', 'operations.node_id').as('label'))
    .where('operations.node_id', '=', p.node_id)
    .where('operations.status', 'in', ['queued', 'running'])
    .where((w) =>
      w.or([
        w('operations.dispatched_at', 'is not', null),
        w('operations.expires_at', 'is', null),
        w('operations.expires_at', '>', p.now),
      ]),
    )
    .orderBy('operations.operation_id')
    .limit(2),
);

/** Agents with queued operations or requested cancellations. */
export const agentsWithWork = defineQuery('operations/agents with work', (db) =>
  db
    .selectFrom('operations')
    .select('node_id')
    .distinct()
    .where('status', 'in', ['queued', 'running'])
    .where((w) => w.or([w('status', '=', 'queued'), w('cancel_requested_at', 'is not', null)])),
);

/**
 * Marks an operation as dispatched if its agent is approved, is connected to the process `incarnation`, and has no
 * other dispatched operation. After that, the agent may have received the operation, so the operation ends only when
 * the agent reports its end or is lost.
 */
export const markDispatched = defineQuery(
  'operations/dispatched',
  (db, p: { operation_id: string; node_id: string; now: number; incarnation: string }) =>
    db
      .updateTable('operations')
      .set({ dispatched_at: p.now })
      .where('operation_id', '=', p.operation_id)
      .where('status', '=', 'queued')
      .where('cancel_requested_at', 'is', null)
      .where((w) =>
        w.exists(
          w
            .selectFrom('agents')
            .select('node_id')
            .where('node_id', '=', p.node_id)
            .where('status', '=', 'approved')
            .where('link_incarnation', '=', p.incarnation),
        ),
      )
      // An operation with a larger ID may have been dispatched first if two processes queued operations at the same
      // time.
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('operations as other')
              .select('other.operation_id')
              .where('other.node_id', '=', p.node_id)
              .where('other.status', 'in', ['queued', 'running'])
              .where('other.dispatched_at', 'is not', null)
              .where('other.operation_id', '!=', p.operation_id),
          ),
        ),
      ),
);

/**
 * Marks the given operations that are queued and are their agent's only open operation, under the conditions of {@link
 * markDispatched}. Returns the IDs of the marked operations.
 */
export const markOnlyDispatched = defineQuery(
  'operations/only ones dispatched',
  (db, p: { operation_ids: readonly string[]; now: number; incarnation: string }, d) =>
    db
      .updateTable('operations')
      .set({ dispatched_at: p.now })
      .where(d.isIn('operation_id', p.operation_ids))
      .where('status', '=', 'queued')
      .where('dispatched_at', 'is', null)
      .where('cancel_requested_at', 'is', null)
      .where((w) => w.or([w('expires_at', 'is', null), w('expires_at', '>', p.now)]))
      .where((w) =>
        w.exists(
          w
            .selectFrom('agents')
            .select('agents.node_id')
            .whereRef('agents.node_id', '=', 'operations.node_id')
            .where('agents.status', '=', 'approved')
            .where('agents.link_incarnation', '=', p.incarnation),
        ),
      )
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('operations as other')
              .select('other.operation_id')
              .whereRef('other.node_id', '=', 'operations.node_id')
              .where('other.status', 'in', ['queued', 'running'])
              .whereRef('other.operation_id', '!=', 'operations.operation_id'),
          ),
        ),
      )
      .returning('operation_id'),
);

/**
 * Marks an operation that never reached its agent as queued again. Changes nothing if its cancellation was requested.
 */
export const markUndispatched = defineQuery('operations/undispatched', (db, p: { operation_id: string }) =>
  db
    .updateTable('operations')
    .set({ dispatched_at: null })
    .where('operation_id', '=', p.operation_id)
    .where('status', '=', 'queued')
    .where('cancel_requested_at', 'is', null),
);

/** Sets the apply with which a drift check compares the machine: the last apply at the time of dispatch. */
export const setSnapshot = defineQuery(
  'operations/set snapshot',
  (db, p: { operation_id: string; snapshot_operation_id: string | null }) =>
    db
      .updateTable('operations')
      .set({ snapshot_operation_id: p.snapshot_operation_id })
      .where('operation_id', '=', p.operation_id),
);

export const markRunning = defineQuery('operations/running', (db, p: { operation_id: string; now: number }) =>
  db
    .updateTable('operations')
    .set({ status: 'running', started_at: p.now })
    .where('operation_id', '=', p.operation_id)
    .where('status', '=', 'queued'),
);
