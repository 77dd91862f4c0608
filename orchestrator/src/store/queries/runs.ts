import type { OperationStatus } from '@muster/protocol';
import type { JsonText } from '../json-text.ts';
import { bytesBefore, bytesOf } from '../page-bytes.ts';
import { defineQuery, defineVariants } from '../query.ts';

/** Runs, and each agent's outcome in a run. */

type RunStatus = 'running' | 'succeeded' | 'failed' | 'halted' | 'cancelled';

export const insertRun = defineQuery(
  'runs/insert',
  (
    db,
    p: {
      run_id: string;
      assignment: string | null;
      kind: 'apply' | 'plan';
      status: 'running' | 'succeeded' | 'failed';
      started_at: number;
      finished_at: number | null;
      requested_by: string;
      options: JsonText<Record<string, unknown>>;
    },
  ) =>
    db.insertInto('runs').values({
      run_id: p.run_id,
      assignment: p.assignment,
      kind: p.kind,
      status: p.status,
      started_at: p.started_at,
      finished_at: p.finished_at,
      requested_by: p.requested_by,
      options: p.options,
    }),
);

/** Inserts a run's agents from rows of `{node_id, position}`. */
export const insertRunResults = defineQuery('runs/insert results', (db, p: { run_id: string; rows: string }, d) =>
  db
    .insertInto('run_results')
    .columns(['run_id', 'node_id', 'status', 'position'])
    .expression(
      (e) =>
        e
          .selectFrom(d.rowsOf(p.rows, { node_id: 'text', position: 'integer' }).as('r'))
          .select((s) => [
            d.typed(p.run_id, 'text').as('run_id'),
            s.ref('r.node_id').as('node_id'),
            e.val('waiting').as('status'),
            s.ref('r.position').as('position'),
          ]) as never,
    ),
);

/**
 * Sets agents' outcomes from rows of `{node_id, operation_id, status, error}`. Changes only outcomes that are
 * `waiting`.
 */
export const putRunResults = defineQuery('runs/put results', (db, p: { run_id: string; rows: string }, d) =>
  db
    .insertInto('run_results')
    .columns(['run_id', 'node_id', 'operation_id', 'status', 'error'])
    .expression(
      (e) =>
        e
          .selectFrom(
            d.rowsOf(p.rows, { node_id: 'text', operation_id: 'text', status: 'text', error: 'text' }).as('r'),
          )
          .select((s) => [
            d.typed(p.run_id, 'text').as('run_id'),
            s.ref('r.node_id').as('node_id'),
            s.ref('r.operation_id').as('operation_id'),
            s.ref('r.status').as('status'),
            s.ref('r.error').as('error'),
          ])
          .where(e.lit(true)) as never,
    )
    .onConflict((c) =>
      c
        .columns(['run_id', 'node_id'])
        .doUpdateSet({
          operation_id: (e) => e.ref('excluded.operation_id'),
          status: (e) => e.ref('excluded.status'),
          error: (e) => e.ref('excluded.error'),
        })
        .where('run_results.status', '=', 'waiting'),
    ),
);

/** Creates the operations of a run for agents that are still approved and waiting. */
export const insertRunOperations = defineQuery(
  'runs/insert operations',
  (
    db,
    p: {
      run_id: string;
      kind: 'apply' | 'plan';
      requested_by: string;
      created_at: number;
      trigger: 'audit' | null;
      /** JSON list of the modules that the request specified in addition to those of assignments. */
      requested_modules: string;
      rows: string;
    },
    d,
  ) =>
    db
      .insertInto('operations')
      .columns([
        'operation_id',
        'node_id',
        'kind',
        'status',
        'modules',
        'requested_by',
        'run_id',
        'created_at',
        'expires_at',
        'payload_digest',
        'requested_modules',
        'plan_id',
        'trigger',
        'secret_versions',
        'revisions',
      ])
      .expression(
        (e) =>
          e
            .selectFrom(
              d
                .rowsOf(p.rows, {
                  operation_id: 'text',
                  node_id: 'text',
                  modules: 'text',
                  payload_digest: 'text',
                  plan_id: 'text',
                  secret_versions: 'text',
                  revisions: 'text',
                  expires_at: 'integer',
                })
                .as('r'),
            )
            // With a join, the query planner would scan all agents.
            .where((w) =>
              w.exists(
                w
                  .selectFrom('agents')
                  .select('agents.node_id')
                  .whereRef('agents.node_id', '=', 'r.node_id')
                  .where('agents.status', '=', 'approved'),
              ),
            )
            .where((w) =>
              w.exists(
                w
                  .selectFrom('run_results')
                  .select('run_results.node_id')
                  .where('run_results.run_id', '=', p.run_id)
                  .whereRef('run_results.node_id', '=', 'r.node_id')
                  .where('run_results.status', '=', 'waiting'),
              ),
            )
            .select((s) => [
              s.ref('r.operation_id').as('operation_id'),
              s.ref('r.node_id').as('node_id'),
              d.typed(p.kind, 'text').as('kind'),
              e.val('queued').as('status'),
              s.ref('r.modules').as('modules'),
              d.typed(p.requested_by, 'text').as('requested_by'),
              d.typed(p.run_id, 'text').as('run_id'),
              d.typed(p.created_at, 'integer').as('created_at'),
              s.ref('r.expires_at').as('expires_at'),
              s.ref('r.payload_digest').as('payload_digest'),
              d.typed(p.requested_modules, 'text').as('requested_modules'),
              s.ref('r.plan_id').as('plan_id'),
              d.typed(p.trigger, 'text').as('trigger'),
              s.ref('r.secret_versions').as('secret_versions'),
              s.ref('r.revisions').as('revisions'),
            ]) as never,
      ),
);

/** Marks outcomes as failed if their operation was not created because the agent was rejected concurrently. */
export const failStranded = defineQuery(
  'runs/fail stranded',
  (db, p: { operation_ids: readonly string[]; error: string }, d) =>
    db
      .updateTable('run_results')
      .set({ status: 'failed', operation_id: null, error: p.error })
      .where(d.isIn('operation_id', p.operation_ids))
      .where('operation_id', 'is not', null)
      .where('status', '=', 'queued')
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('operations')
              .select('operations.operation_id')
              .whereRef('operations.operation_id', '=', 'run_results.operation_id'),
          ),
        ),
      ),
);

export const runById = defineQuery('runs/by id', (db, p: { run_id: string }) =>
  db.selectFrom('runs').selectAll().where('run_id', '=', p.run_id),
);

/** Runs, newest first. */
export const runs = defineVariants(
  'runs/list',
  (
    db,
    p: { status: RunStatus; kind: 'apply' | 'plan'; assignment: string; limit: number; offset: number },
    _d,
    v: { status?: boolean; kind?: boolean; assignment?: boolean; latest?: boolean },
  ) => {
    let matching = db.selectFrom('runs');
    if (v.status) matching = matching.where('status', '=', p.status);
    if (v.kind) matching = matching.where('kind', '=', p.kind);
    if (v.assignment) matching = matching.where('assignment', '=', p.assignment);
    const newest = matching
      .where('assignment', 'is not', null)
      .groupBy('assignment')
      .select((e) => e.fn.max('run_id').as('run_id'));
    const query = v.latest ? db.selectFrom('runs').where('run_id', 'in', newest) : matching;
    return query.selectAll().orderBy('run_id', 'desc').limit(p.limit).offset(p.offset);
  },
);

export const insertRunBasis = defineQuery('runs/insert basis', (db, p: { run_id: string; basis: JsonText<unknown> }) =>
  db.insertInto('run_bases').values({ run_id: p.run_id, basis: p.basis }),
);

export const runBasis = defineQuery('runs/basis', (db, p: { run_id: string }) =>
  db.selectFrom('run_bases').select('basis').where('run_id', '=', p.run_id),
);

/** For preconditions: returns a row if the run still starts operations. */
export const runIsRunning = defineQuery('runs/goes on', (db, p: { run_id: string }) =>
  db.selectFrom('runs').select('run_id').where('run_id', '=', p.run_id).where('status', '=', 'running'),
);

/** All outcomes of a run, in order. Read with a single statement, so that no agent is counted twice. */
export const trackedResults = defineQuery('runs/tracked results', (db, p: { run_id: string }) =>
  db
    .selectFrom('run_results')
    .select(['node_id', 'operation_id', 'status', 'position'])
    .where('run_id', '=', p.run_id)
    .orderBy('position'),
);

/** Stops a run from starting operations. Its open operations continue. */
export const stopRun = defineQuery('runs/stop', (db, p: { run_id: string; status: 'halted' | 'cancelled' }) =>
  db.updateTable('runs').set({ status: p.status }).where('run_id', '=', p.run_id).where('status', '=', 'running'),
);

/** For preconditions: returns a row if the run has not ended. */
export const openRun = defineQuery('runs/open one', (db, p: { run_id: string }) =>
  db.selectFrom('runs').select('run_id').where('run_id', '=', p.run_id).where('finished_at', 'is', null),
);

/** Records the final outcome of the agents that the run has not reached. */
export const endWaiting = defineQuery(
  'runs/end waiting',
  (db, p: { run_id: string; status: OperationStatus; error: string }) =>
    db
      .updateTable('run_results')
      .set({ status: p.status, error: p.error })
      .where('run_id', '=', p.run_id)
      .where('status', '=', 'waiting'),
);

/** Records the final outcome of operations that were not dispatched. Must precede the statement that ends the operations. */
export const endUnsentResults = defineQuery(
  'runs/end unsent results',
  (db, p: { run_id: string; status: OperationStatus; error: string }) =>
    db
      .updateTable('run_results')
      .set({ status: p.status, error: p.error })
      .where('run_id', '=', p.run_id)
      .where('status', '=', 'queued')
      .where('operation_id', 'in', (e) =>
        e
          .selectFrom('operations')
          .select('operations.operation_id')
          .where('operations.run_id', '=', p.run_id)
          .where('operations.status', '=', 'queued')
          .where('operations.dispatched_at', 'is', null),
      ),
);

/** Ends the operations of a run that were not dispatched. */
export const endUnsent = defineQuery(
  'runs/end unsent',
  (db, p: { run_id: string; status: OperationStatus; finished_at: number; error: string }) =>
    db
      .updateTable('operations')
      .set({ status: p.status, finished_at: p.finished_at, error: p.error })
      .where('run_id', '=', p.run_id)
      .where('status', '=', 'queued')
      .where('dispatched_at', 'is', null)
      .returning(['operation_id', 'node_id']),
);

/** Requests the cancellation of a run's dispatched operations. */
export const requestCancels = defineQuery('runs/request cancels', (db, p: { run_id: string; now: number }) =>
  db
    .updateTable('operations')
    .set({ cancel_requested_at: p.now })
    .where('run_id', '=', p.run_id)
    .where('status', 'in', ['queued', 'running'])
    .where('dispatched_at', 'is not', null)
    .returning(['operation_id', 'node_id']),
);

const pageRows = 1000;

/**
 * The outcomes that follow the given agent, by agent, with their operations. The status of the operation, if any, is
 * newer than that of the outcome. Limited to about `bytes` in total, but returns at least one outcome.
 */
export const runResultPage = defineQuery('runs/results', (db, p: { run_id: string; after: string; bytes: number }) =>
  db
    .selectFrom((e) =>
      e
        .selectFrom((inner) =>
          inner
            .selectFrom('run_results')
            .leftJoin('operations', 'operations.operation_id', 'run_results.operation_id')
            .select('run_results.node_id')
            .select(bytesOf('run_results.error', 'operations.error', 'operations.summary').as('bytes'))
            .where('run_results.run_id', '=', p.run_id)
            .where('run_results.node_id', '>', p.after)
            .orderBy('run_results.node_id')
            .limit(pageRows)
            .as('sized'),
        )
        .select('node_id')
        .select(bytesBefore(['node_id']).as('before'))
        .as('cut'),
    )
    .innerJoin('run_results', 'run_results.node_id', 'cut.node_id')
    .leftJoin('agents', 'agents.node_id', 'run_results.node_id')
    .leftJoin('operations', 'operations.operation_id', 'run_results.operation_id')
    .select([
      'run_results.node_id',
      'agents.name',
      'run_results.operation_id',
      'run_results.status',
      'run_results.error',
      'operations.status as operation_status',
      'operations.summary',
      'operations.error as operation_error',
    ])
    .where('run_results.run_id', '=', p.run_id)
    .where('cut.before', '<', p.bytes)
    .orderBy('run_results.node_id'),
);

export const setRunResult = defineQuery(
  'runs/set result',
  (db, p: { run_id: string; node_id: string; status: OperationStatus; error: string | null }, d) =>
    db
      .updateTable('run_results')
      // If the new error is null, keeps the existing error.
      .set((e) => ({ status: p.status, error: e.fn.coalesce(d.typed(p.error, 'text'), 'error') }))
      .where('run_id', '=', p.run_id)
      .where('node_id', '=', p.node_id),
);

export const anyRunResultOpen = defineQuery('runs/any open', (db, p: { run_id: string }) =>
  db
    .selectFrom('run_results')
    .select('node_id')
    .where('run_id', '=', p.run_id)
    .where('status', 'in', ['waiting', 'queued'])
    .limit(1),
);

/** Open runs. Unlimited, because there are few. */
export const openRuns = defineQuery('runs/open', (db) =>
  db.selectFrom('runs').select('run_id').where('finished_at', 'is', null).orderBy('run_id'),
);

/** Counts the agents in the given runs by status, and by whether they have an operation. */
export const runOutcomeCounts = defineQuery('runs/outcome counts', (db, p: { run_ids: readonly string[] }, d) =>
  db
    .selectFrom((e) =>
      e
        .selectFrom('run_results')
        .select(['run_id', 'status'])
        .select((f) => f.case().when('operation_id', 'is', null).then(0).else(1).end().as('has_operation'))
        .where(d.isIn('run_id', p.run_ids))
        .as('outcomes'),
    )
    .select(['run_id', 'status', 'has_operation'])
    .select((f) => f.fn.countAll<number>().as('count'))
    .groupBy(['run_id', 'status', 'has_operation']),
);

type OutcomeCounts = Record<'succeeded' | 'failed' | 'cancelled' | 'skipped', number>;

/** Ends a run. Changes nothing if the run has open outcomes. A halted or canceled run keeps its status. */
export const endRunIfDone = defineQuery('runs/end', (db, p: { run_id: string; now: number } & OutcomeCounts) =>
  db
    .updateTable('runs')
    .set((e) => ({
      succeeded: p.succeeded,
      failed: p.failed,
      cancelled: p.cancelled,
      skipped: p.skipped,
      status: e
        .case()
        .when('status', '!=', 'running')
        .then(e.ref('status'))
        .when(
          e.exists(
            e
              .selectFrom('run_results')
              .select('run_results.node_id')
              .where('run_results.run_id', '=', p.run_id)
              .where('run_results.status', '!=', 'succeeded'),
          ),
        )
        .then('failed')
        .else('succeeded')
        .end() as never,
      finished_at: p.now,
    }))
    .where('run_id', '=', p.run_id)
    .where('finished_at', 'is', null)
    .where((w) =>
      w.not(
        w.exists(
          w
            .selectFrom('run_results')
            .select('run_results.node_id')
            .where('run_results.run_id', '=', p.run_id)
            .where('run_results.status', 'in', ['waiting', 'queued']),
        ),
      ),
    )
    .returning(['run_id', 'status']),
);

/** Counts, for each given run, the agents whose outcome is not known. Omits runs without such agents. */
export const openResults = defineQuery('runs/open results', (db, p: { run_ids: readonly string[] }, d) =>
  db
    .selectFrom('run_results')
    .select((e) => ['run_id', e.fn.countAll<number>().as('count')])
    .where(d.isIn('run_id', p.run_ids))
    .where('status', 'in', ['waiting', 'queued', 'running'])
    .groupBy('run_id'),
);
