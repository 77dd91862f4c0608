import type { OperationKind, OperationStatus, Summary } from '@muster/protocol';
import { sql } from 'kysely';
import type { JsonText } from '../json-text.ts';
import { defineQuery, defineVariants } from '../query.ts';

const entry = [
  'operation_id',
  'node_id',
  'kind',
  'status',
  'modules',
  'requested_by',
  'run_id',
  'plan_id',
  'created_at',
  'dispatched_at',
  'started_at',
  'finished_at',
  'expires_at',
  'cancel_requested_at',
  'trigger',
  'summary',
  'error',
  'snapshot_operation_id',
] as const;

export const operationById = defineQuery('operations/by id', (db, p: { operation_id: string }) =>
  db.selectFrom('operations').select(entry).where('operation_id', '=', p.operation_id),
);

/** The plan to which an apply is bound. */
export const planById = defineQuery('operations/plan by id', (db, p: { operation_id: string }) =>
  db
    .selectFrom('operations')
    .select([
      'operation_id',
      'node_id',
      'kind',
      'status',
      'created_at',
      'run_id',
      'modules',
      'requested_modules',
      'payload_digest',
      'plan_digest',
      'secret_versions',
    ])
    .where('operation_id', '=', p.operation_id),
);

export const plansOfRun = defineQuery(
  'operations/plans of run',
  (db, p: { run_id: string; node_ids: readonly string[] }, d) =>
    db
      .selectFrom('operations')
      .select(['operation_id', 'node_id', 'status', 'created_at', 'payload_digest', 'plan_digest', 'secret_versions'])
      .where('run_id', '=', p.run_id)
      .where(d.isIn('node_id', p.node_ids))
      .where('kind', '=', 'plan'),
);

/** An operation about which its agent has sent a report. */
export interface ReportedOperation {
  operation_id: string;
  node_id: string;
  kind: OperationKind;
  status: OperationStatus;
  requested_by: string;
  run_id: string | null;
  trigger: 'operator' | 'schedule' | 'watch' | 'audit' | null;
  snapshot_operation_id: string | null;
  /**
   * Digest of the dispatched desired state or, for a drift check, of the apply that the check compares with. Null if
   * that operation is no longer stored.
   */
  payload_digest: string | null;
  /** For an apply, the revision of each of its modules, as JSON; null for an apply that an earlier release queued. */
  revisions: string | null;
  /** Time at which the operation was dispatched, in Unix seconds; null if it has not been dispatched. */
  dispatched_at: number | null;
  label: string;
}

export type SentOperation = Pick<ReportedOperation, 'payload_digest'>;

export const reportedOperation = defineQuery('operations/reported', (db, p: { operation_id: string }) =>
  db
    .selectFrom('operations')
    .leftJoin('agents', 'agents.node_id', 'operations.node_id')
    .leftJoin('operations as snapshot', 'snapshot.operation_id', 'operations.snapshot_operation_id')
    .select([
      'operations.operation_id',
      'operations.node_id',
      'operations.kind',
      'operations.status',
      'operations.requested_by',
      'operations.run_id',
      'operations.trigger',
      'operations.snapshot_operation_id',
      'operations.revisions',
      'operations.dispatched_at',
    ])
    .select((e) => e.fn.coalesce('operations.payload_digest', 'snapshot.payload_digest').as('payload_digest'))
    .select((e) => e.fn.coalesce('agents.name', 'agents.initial_hostname', 'operations.node_id').as('label'))
    .where('operations.operation_id', '=', p.operation_id),
);

/** Operations, newest first. Omits drift checks by default, because the API lists them separately. */
export const operations = defineVariants(
  'operations/list',
  (
    db,
    p: {
      node_id: string;
      status: OperationStatus;
      kind: OperationKind;
      below: string;
      limit: number;
      offset: number;
    },
    _d,
    v: { node_id?: boolean; status?: boolean; kind?: boolean; below?: boolean },
  ) => {
    let query = db.selectFrom('operations').select(entry);
    if (v.node_id) query = query.where('node_id', '=', p.node_id);
    if (v.status) query = query.where('status', '=', p.status);
    query = v.kind ? query.where('kind', '=', p.kind) : query.where('kind', '!=', 'drift');
    if (v.below) query = query.where('operation_id', '<', p.below);
    return query.orderBy('operation_id', 'desc').limit(p.limit).offset(p.offset);
  },
);

export const insertOperation = defineQuery(
  'operations/insert',
  (
    db,
    p: {
      operation_id: string;
      node_id: string;
      kind: OperationKind;
      modules: JsonText<string[]>;
      requested_by: string;
      run_id: string | null;
      plan_id: string | null;
      created_at: number;
      expires_at: number | null;
      trigger: 'operator' | 'schedule' | 'watch' | 'audit' | null;
      payload_digest: string | null;
      snapshot_operation_id: string | null;
      requested_modules: JsonText<string[]>;
      secret_versions: JsonText<Record<string, number>> | null;
      revisions: JsonText<Record<string, number>> | null;
    },
  ) =>
    db.insertInto('operations').values({
      operation_id: p.operation_id,
      node_id: p.node_id,
      kind: p.kind,
      status: 'queued',
      modules: p.modules,
      requested_by: p.requested_by,
      run_id: p.run_id,
      plan_id: p.plan_id,
      created_at: p.created_at,
      dispatched_at: null,
      started_at: null,
      finished_at: null,
      expires_at: p.expires_at,
      cancel_requested_at: null,
      trigger: p.trigger,
      summary: null,
      error: null,
      payload_digest: p.payload_digest,
      snapshot_operation_id: p.snapshot_operation_id,
      requested_modules: p.requested_modules,
      plan_digest: null,
      secret_versions: p.secret_versions,
      revisions: p.revisions,
    }),
);

/** An agent's open operations, in the order in which they run. */
export const openOperations = defineQuery('operations/open', (db, p: { node_id: string }) =>
  db
    .selectFrom('operations')
    .select(entry)
    .where('node_id', '=', p.node_id)
    .where('status', 'in', ['queued', 'running'])
    .orderBy('operation_id'),
);

/**
 * The largest ID of the given agents' open operations; null if there are none. The expression prevents PostgreSQL from
 * searching all operations backward for the first match.
 */
export const newestOpen = defineQuery('operations/newest open', (db, p: { node_ids: readonly string[] }, d) =>
  db
    .selectFrom('operations')
    .select(({ fn }) => fn.max<string | null>(sql`operation_id || ''`).as('operation_id'))
    .where(d.isIn('node_id', p.node_ids))
    .where('status', 'in', ['queued', 'running']),
);

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

/** Returns the given IDs that belong to an operation or a run that has ended. */
export const endedOfWaiting = defineQuery('operations/ended of waiting', (db, p: { ids: readonly string[] }, d) =>
  db
    .selectFrom('operations')
    .select('operation_id as id')
    .where(d.isIn('operation_id', p.ids))
    .where('finished_at', 'is not', null)
    .unionAll(
      db.selectFrom('runs').select('run_id as id').where(d.isIn('run_id', p.ids)).where('finished_at', 'is not', null),
    ),
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
 * Marks an operation as dispatched if its agent is approved and has no other operation. After that, the agent may have
 * received the operation, so the operation ends only when the agent reports its end or is lost.
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
 * Digest of the desired state that was last applied on each operation's machine; null if none was applied or its
 * payload is no longer stored.
 */
export const appliedBefore = defineQuery(
  'operations/applied before',
  (db, p: { operation_ids: readonly string[] }, d) =>
    db
      .selectFrom('operations')
      .leftJoin('agent_state', 'agent_state.node_id', 'operations.node_id')
      .leftJoin('operations as applied', 'applied.operation_id', 'agent_state.snapshot_operation_id')
      .select(['operations.operation_id', 'applied.payload_digest'])
      .where(d.isIn('operations.operation_id', p.operation_ids)),
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

/** Stores a plan's digest, which the agent calculated. */
export const setPlanDigest = defineQuery(
  'operations/set plan digest',
  (db, p: { operation_id: string; plan_digest: string }) =>
    db.updateTable('operations').set({ plan_digest: p.plan_digest }).where('operation_id', '=', p.operation_id),
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

export const putPayload = defineQuery(
  'operations/put payload',
  (db, p: { digest: string; payload: JsonText<unknown> }) =>
    db
      .insertInto('operation_payloads')
      .values({ digest: p.digest, payload: p.payload })
      .onConflict((c) => c.column('digest').doNothing()),
);

export const payloadByDigest = defineQuery('operations/payload', (db, p: { digest: string }) =>
  db.selectFrom('operation_payloads').select('payload').where('digest', '=', p.digest),
);

/** Number of resources in the desired state of an operation. Returns no row if the desired state is no longer stored. */
export const desiredResourceCount = defineQuery(
  'operations/desired resource count',
  (db, p: { operation_id: string }, d) =>
    db
      .selectFrom('operations')
      .innerJoin('operation_payloads', 'operation_payloads.digest', 'operations.payload_digest')
      .select(d.jsonLength('operation_payloads.payload', 'resources').as('count'))
      .where('operation_id', '=', p.operation_id),
);

/** For preconditions: returns a row if the payload exists. */
export const payloadSeen = defineQuery('operations/payload seen', (db, p: { digest: string }) =>
  db.selectFrom('operation_payloads').select('digest').where('digest', '=', p.digest),
);

/**
 * Digests of the dispatched payload, of the payload that a drift check compares with, and of the payload that was last
 * applied on the machine.
 */
export const payloadsReportedOn = defineQuery('operations/payloads reported on', (db, p: { operation_id: string }) =>
  db
    .selectFrom('operations')
    .leftJoin('operations as snapshot', 'snapshot.operation_id', 'operations.snapshot_operation_id')
    .leftJoin('agent_state', 'agent_state.node_id', 'operations.node_id')
    .leftJoin('operations as applied', 'applied.operation_id', 'agent_state.snapshot_operation_id')
    .select([
      'operations.payload_digest as own',
      'snapshot.payload_digest as snapshot',
      'applied.payload_digest as applied',
    ])
    .where('operations.operation_id', '=', p.operation_id),
);

/** Time at which the earliest open operation was dispatched; null if no open operation has been dispatched. */
export const oldestSent = defineQuery('operations/oldest sent', (db) =>
  db
    .selectFrom('operations')
    .select((e) => e.fn.min('dispatched_at').as('dispatched_at'))
    .where('status', 'in', ['queued', 'running']),
);

/** Deletes the open operation of a finished drift check, whose result is stored as a drift record. */
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

/** The largest operation ID. The next ID must exceed it, even if the clock is behind. */
export const lastOperationId = defineQuery('operations/last id', (db) =>
  db.selectFrom('operations').select('operation_id').orderBy('operation_id', 'desc').limit(1),
);

export const markRunning = defineQuery('operations/running', (db, p: { operation_id: string; now: number }) =>
  db
    .updateTable('operations')
    .set({ status: 'running', started_at: p.now })
    .where('operation_id', '=', p.operation_id)
    .where('status', '=', 'queued'),
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
