import type { OperationKind, OperationStatus } from '@muster/protocol';
import { sql } from 'kysely';
import type { JsonText } from '../../json-text.ts';
import { defineQuery, defineVariants } from '../../query.ts';

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

/** The columns of an operation that are needed to store its agent's reports. */
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

/** Stores a plan's digest, which the agent calculated. */
export const setPlanDigest = defineQuery(
  'operations/set plan digest',
  (db, p: { operation_id: string; plan_digest: string }) =>
    db.updateTable('operations').set({ plan_digest: p.plan_digest }).where('operation_id', '=', p.operation_id),
);

/** The largest operation ID. The next ID must exceed it, even if the clock is behind. */
export const lastOperationId = defineQuery('operations/last id', (db) =>
  db.selectFrom('operations').select('operation_id').orderBy('operation_id', 'desc').limit(1),
);
