import type { JsonText } from './json-text.ts';
import { defineQuery } from './query.ts';

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

/** Many outcomes at once: rows of `{node_id, operation_id, status, error}`; what is there already is replaced. */
export const putRunResults = defineQuery('runs/put results', (db, p: { run_id: string; rows: string }, d) =>
  db
    .insertInto('run_results')
    .columns(['run_id', 'node_id', 'operation_id', 'status', 'error'])
    .expression((e) =>
      e
        .selectFrom(d.rowsOf(p.rows, { node_id: 'text', operation_id: 'text', status: 'text', error: 'text' }).as('r'))
        .select((s) => [
          d.typed(p.run_id, 'text').as('run_id'),
          s.ref('r.node_id').as('node_id'),
          s.ref('r.operation_id').as('operation_id'),
          s.ref('r.status').as('status'),
          s.ref('r.error').as('error'),
        ])
        .where(e.lit(true)),
    )
    .onConflict((c) =>
      c.columns(['run_id', 'node_id']).doUpdateSet({
        operation_id: (e) => e.ref('excluded.operation_id'),
        status: (e) => e.ref('excluded.status'),
        error: (e) => e.ref('excluded.error'),
      }),
    ),
);

/** Many operations of one run at once, for those agents that are (still) approved. */
export const insertRunOperations = defineQuery(
  'runs/insert operations',
  (
    db,
    p: {
      run_id: string;
      kind: 'apply' | 'plan';
      requested_by: string;
      created_at: number;
      expires_at: number;
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
      ])
      .expression(
        (e) =>
          e
            .selectFrom(
              d
                .rowsOf(p.rows, { operation_id: 'text', node_id: 'text', modules: 'text', payload_digest: 'text' })
                .as('r'),
            )
            // Not a join: the planner would go through all agents for it.
            .where((w) =>
              w.exists(
                w
                  .selectFrom('agents')
                  .select('agents.node_id')
                  .whereRef('agents.node_id', '=', 'r.node_id')
                  .where('agents.status', '=', 'approved'),
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
              d.typed(p.expires_at, 'integer').as('expires_at'),
              s.ref('r.payload_digest').as('payload_digest'),
            ]) as never,
      ),
);

/** Outcomes whose operation was not made after all: the agent was rejected in that moment. */
export const failStranded = defineQuery('runs/fail stranded', (db, p: { run_id: string; error: string }) =>
  db
    .updateTable('run_results')
    .set({ status: 'failed', operation_id: null, error: p.error })
    .where('run_id', '=', p.run_id)
    .where('status', '=', 'queued')
    .where('operation_id', 'is not', null)
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

/** Outcomes that a process left behind before it had decided on them. */
export const failUndecided = defineQuery('runs/fail undecided', (db, p: { error: string }) =>
  db
    .updateTable('run_results')
    .set({ status: 'failed', error: p.error })
    .where('status', '=', 'queued')
    .where('operation_id', 'is', null),
);

export const runById = defineQuery('runs/by id', (db, p: { run_id: string }) =>
  db.selectFrom('runs').selectAll().where('run_id', '=', p.run_id),
);

export const runs = defineQuery('runs/list', (db, p: { limit: number; offset: number }) =>
  db.selectFrom('runs').selectAll().orderBy('run_id', 'desc').limit(p.limit).offset(p.offset),
);

/** Outcomes with what is known of their operations; the operation's own status is the newer one. */
export const runResults = defineQuery('runs/results', (db, p: { run_id: string }) =>
  db
    .selectFrom('run_results')
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
    .orderBy('run_results.node_id'),
);

export const setRunResult = defineQuery(
  'runs/set result',
  (db, p: { run_id: string; node_id: string; status: string; error: string | null }) =>
    db
      .updateTable('run_results')
      .set({ status: p.status, error: p.error })
      .where('run_id', '=', p.run_id)
      .where('node_id', '=', p.node_id),
);

export const anyRunResultOpen = defineQuery('runs/any open', (db, p: { run_id: string }) =>
  db.selectFrom('run_results').select('node_id').where('run_id', '=', p.run_id).where('status', '=', 'queued').limit(1),
);

/** Runs that have not ended; there are few. */
export const openRuns = defineQuery('runs/open', (db) =>
  db.selectFrom('runs').select('run_id').where('status', '=', 'running').orderBy('run_id'),
);

/** Ends a run of which no outcome is still to come; changes nothing otherwise. */
export const endRunIfDone = defineQuery('runs/end', (db, p: { run_id: string; now: number }) =>
  db
    .updateTable('runs')
    .set((e) => ({
      status: e
        .case()
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
    .where('status', '=', 'running')
    .where((w) =>
      w.not(
        w.exists(
          w
            .selectFrom('run_results')
            .select('run_results.node_id')
            .where('run_results.run_id', '=', p.run_id)
            .where('run_results.status', '=', 'queued'),
        ),
      ),
    )
    .returning(['run_id', 'status']),
);
