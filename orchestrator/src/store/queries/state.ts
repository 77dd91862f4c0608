import type { ExpressionBuilder, Kysely } from 'kysely';
import type { Dialect } from '../dialect.ts';
import { bytesBefore, bytesOf } from '../page-bytes.ts';
import { defineQuery } from '../query.ts';
import type { Schema } from '../schema.ts';

/** Applied state of each machine: resources in place, pending removals, and resources that failed to apply. */

const pageRows = 2000;

/**
 * Returns the resources with the given state that follow the given module and key, ordered by module and key. Limited
 * to about `bytes` in total, but returns at least one resource.
 */
export const appliedPage = defineQuery(
  'state/page',
  (
    db,
    p: {
      node_id: string;
      state: 'applied' | 'pending_removal' | 'unapplied';
      after_module: string;
      after_key: string;
      bytes: number;
    },
  ) =>
    db
      .selectFrom((e) =>
        e
          .selectFrom((inner) =>
            inner
              .selectFrom('applied_resources')
              .select(['module', 'key'])
              .select(bytesOf('key', 'module', 'resource_id', 'type', 'identity', 'reason').as('bytes'))
              .where('node_id', '=', p.node_id)
              .where('state', '=', p.state)
              .where((w) => w(w.refTuple('module', 'key'), '>', w.tuple(p.after_module, p.after_key)))
              .orderBy('module')
              .orderBy('key')
              .limit(pageRows)
              .as('sized'),
          )
          .select(['key'])
          .select(bytesBefore(['module', 'key']).as('before'))
          .as('cut'),
      )
      .innerJoin('applied_resources', 'applied_resources.key', 'cut.key')
      .selectAll('applied_resources')
      .where('applied_resources.node_id', '=', p.node_id)
      .where('cut.before', '<', p.bytes)
      .orderBy('applied_resources.module')
      .orderBy('applied_resources.key'),
);

export const appliedByKeys = defineQuery('state/by keys', (db, p: { node_id: string; keys: readonly string[] }, d) =>
  db.selectFrom('applied_resources').selectAll().where('node_id', '=', p.node_id).where(d.isIn('key', p.keys)),
);

export const agentState = defineQuery('state/of agent', (db, p: { node_id: string }) =>
  db.selectFrom('agent_state').selectAll().where('node_id', '=', p.node_id),
);

export const putApplied = defineQuery('state/put', (db, p: { node_id: string; rows: string }, d) =>
  db
    .insertInto('applied_resources')
    .columns([
      'node_id',
      'key',
      'module',
      'resource_id',
      'type',
      'identity',
      'operation_id',
      'since',
      'state',
      'reason',
      'in_place',
    ])
    .expression(
      (e) =>
        e
          .selectFrom(
            d
              .rowsOf(p.rows, {
                key: 'text',
                module: 'text',
                resource_id: 'text',
                type: 'text',
                identity: 'text',
                operation_id: 'text',
                since: 'integer',
                state: 'text',
                reason: 'text',
                in_place: 'integer',
              })
              .as('r'),
          )
          .select((s) => [
            d.typed(p.node_id, 'text').as('node_id'),
            s.ref('r.key').as('key'),
            s.ref('r.module').as('module'),
            s.ref('r.resource_id').as('resource_id'),
            s.ref('r.type').as('type'),
            s.ref('r.identity').as('identity'),
            s.ref('r.operation_id').as('operation_id'),
            s.ref('r.since').as('since'),
            s.ref('r.state').as('state'),
            s.ref('r.reason').as('reason'),
            s.ref('r.in_place').as('in_place'),
          ])
          .where(e.lit(true)) as never,
    )
    .onConflict((c) =>
      c.columns(['node_id', 'key']).doUpdateSet({
        module: (e) => e.ref('excluded.module'),
        resource_id: (e) => e.ref('excluded.resource_id'),
        type: (e) => e.ref('excluded.type'),
        identity: (e) => e.ref('excluded.identity'),
        operation_id: (e) => e.ref('excluded.operation_id'),
        since: (e) => e.ref('excluded.since'),
        state: (e) => e.ref('excluded.state'),
        reason: (e) => e.ref('excluded.reason'),
        in_place: (e) => e.ref('excluded.in_place'),
      }),
    ),
);

export const deleteApplied = defineQuery('state/delete', (db, p: { node_id: string; keys: readonly string[] }, d) =>
  db.deleteFrom('applied_resources').where('node_id', '=', p.node_id).where(d.isIn('key', p.keys)),
);

/** @param keys rows of `{key}`, created by `jsonRows` */
const isNotAmong = (w: ExpressionBuilder<Schema, 'applied_resources'>, d: Dialect, keys: string) =>
  w('key', 'not in', (e) => e.selectFrom(d.rowsOf(keys, { key: 'text' }).as('stay')).select('stay.key'));

/**
 * Deletes rows whose keys are not in `stay` and whose resources are not in place. With `complete`, also deletes rows of
 * resources in place, unless their module is in `keep_modules`.
 */
export const deleteOthers = defineQuery(
  'state/delete others',
  (db, p: { node_id: string; stay: string; complete: boolean; keep_modules: readonly string[] }, d) =>
    db
      .deleteFrom('applied_resources')
      .where('node_id', '=', p.node_id)
      .where((w) => isNotAmong(w, d, p.stay))
      .where((w) =>
        w.or([
          w('in_place', '=', 0),
          w.and([w(d.typed(p.complete as never, 'integer'), '=', 1), d.isNotIn('module', p.keep_modules)]),
        ]),
      ),
);

/**
 * Sets the in-place resources of `keep_modules` to `applied`, except those whose keys are in `stay`. The agent left
 * these resources unchanged.
 */
export const keepOthers = defineQuery(
  'state/keep others',
  (db, p: { node_id: string; stay: string; keep_modules: readonly string[]; now: number }, d) =>
    db
      .updateTable('applied_resources')
      .set({ state: 'applied', reason: null, since: p.now })
      .where('node_id', '=', p.node_id)
      .where('state', '!=', 'applied')
      .where('in_place', '=', 1)
      .where(d.isIn('module', p.keep_modules))
      .where((w) => isNotAmong(w, d, p.stay)),
);

export const deleteStateOf = defineQuery('state/delete agent', (db, p: { node_id: string }) =>
  db.deleteFrom('agent_state').where('node_id', '=', p.node_id),
);

export const deleteEveryApplied = defineQuery('state/delete every', (db, p: { node_id: string }) =>
  db.deleteFrom('applied_resources').where('node_id', '=', p.node_id),
);

/** Stores the revisions that an apply has applied. Rows with the same revision remain unchanged. */
export const putAppliedModules = defineQuery('state/put modules', (db, p: { node_id: string; rows: string }, d) =>
  db
    .insertInto('applied_modules')
    .columns(['node_id', 'module', 'revision'])
    .expression(
      (e) =>
        e
          .selectFrom(d.rowsOf(p.rows, { module: 'text', revision: 'integer' }).as('r'))
          .select((s) => [
            d.typed(p.node_id, 'text').as('node_id'),
            s.ref('r.module').as('module'),
            s.ref('r.revision').as('revision'),
          ])
          .where(e.lit(true)) as never,
    )
    .onConflict((c) =>
      c
        .columns(['node_id', 'module'])
        .doUpdateSet({ revision: (e) => e.ref('excluded.revision') })
        .whereRef('excluded.revision', '!=', 'applied_modules.revision'),
    ),
);

/** Deletes an agent's applied modules, except those in `stay`. */
export const deleteAppliedModules = defineQuery(
  'state/delete modules',
  (db, p: { node_id: string; stay: readonly string[] }, d) =>
    db.deleteFrom('applied_modules').where('node_id', '=', p.node_id).where(d.isNotIn('module', p.stay)),
);

/** Returns a row if the newest drift check did not find the agent in sync. In this case, an apply makes a check due. */
const notInSync = (db: Kysely<Schema>, nodeId: string) =>
  db
    .selectFrom('latest_drift')
    .select('latest_drift.node_id')
    .where('latest_drift.node_id', '=', nodeId)
    .where('latest_drift.status', '<>', 'in_sync');

/**
 * Records a successful apply that had no changes. Changes nothing if another apply has been recorded since then, or if
 * the agent has drifted from the applied state.
 */
export const repeatAgentState = defineQuery(
  'state/repeat agent',
  (db, p: { node_id: string; last_operation_id: string; operation_id: string; now: number }, d) =>
    db
      .updateTable('agent_state')
      .set((e) => ({
        snapshot_operation_id: p.operation_id,
        updated_at: p.now,
        failed_apply_id: null,
        drift_due_at: e
          .case()
          .when(e.exists(notInSync(db, p.node_id)))
          .then(d.typed(p.now, 'integer'))
          .else(e.ref('drift_due_at'))
          .end(),
      }))
      .where('node_id', '=', p.node_id)
      .where('snapshot_operation_id', '=', p.last_operation_id)
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('drift_states')
              .select('drift_states.scope')
              .where('drift_states.node_id', '=', p.node_id)
              .where('drift_states.scope', '=', ''),
          ),
        ),
      ),
);

/** Records that the newest apply failed. */
export const putFailedApply = defineQuery(
  'state/put failed apply',
  (db, p: { node_id: string; operation_id: string; now: number }) =>
    db
      .insertInto('agent_state')
      .values({
        node_id: p.node_id,
        snapshot_operation_id: null,
        updated_at: p.now,
        drift_due_at: null,
        failed_apply_id: p.operation_id,
      })
      .onConflict((c) =>
        c.column('node_id').doUpdateSet({ failed_apply_id: (e) => e.ref('excluded.failed_apply_id') }),
      ),
);

/**
 * Records an apply. If the new snapshot is null, keeps the current snapshot. Sets `drift_due_at` only if no check is
 * due, or if the newest check did not find the agent in sync.
 */
export const putAgentState = defineQuery(
  'state/put agent',
  (db, p: { node_id: string; snapshot_operation_id: string | null; drift_due_at: number | null; now: number }, d) =>
    db
      .insertInto('agent_state')
      .values({
        node_id: p.node_id,
        snapshot_operation_id: d.typed(p.snapshot_operation_id, 'text'),
        updated_at: p.now,
        drift_due_at: d.typed(p.drift_due_at, 'integer'),
        failed_apply_id: null,
      })
      .onConflict((c) =>
        c.column('node_id').doUpdateSet((e) => ({
          snapshot_operation_id: e.fn.coalesce('excluded.snapshot_operation_id', 'agent_state.snapshot_operation_id'),
          updated_at: e.ref('excluded.updated_at'),
          // Only a successful apply has a snapshot, so it clears an earlier failure.
          failed_apply_id: e
            .case()
            .when('excluded.snapshot_operation_id', 'is', null)
            .then(e.ref('agent_state.failed_apply_id'))
            .else(null)
            .end(),
          drift_due_at: e
            .case()
            .when(e.and([e('excluded.drift_due_at', 'is not', null), e.exists(notInSync(db, p.node_id))]))
            .then(e.ref('excluded.drift_due_at'))
            .else(e.fn.coalesce('agent_state.drift_due_at', 'excluded.drift_due_at'))
            .end(),
        })),
      ),
);
