import { bytesBefore, bytesOf } from '../page-bytes.ts';
import { defineQuery } from '../query.ts';

const pageRows = 1000;

/**
 * Approved agents that need attention. The queries do not read other agents. Cross joins prevent SQLite, which has no
 * statistics here, from scanning all agents first.
 */

/** Returns a row for each of an agent's drift states: one for the applied state, and one for each audit assignment. */
export const agentsDrifted = defineQuery('reconcile/drifted', (db) =>
  db
    .selectFrom('drift_states')
    .crossJoin('agents')
    .select(['agents.node_id', 'agents.name'])
    .whereRef('agents.node_id', '=', 'drift_states.node_id')
    .select((e) => e.case().when('drift_states.accepted', 'is', null).then(0).else(1).end().as('is_accepted'))
    .where('agents.status', '=', 'approved'),
);

export const agentsWithFailedCheck = defineQuery('reconcile/failed checks', (db) =>
  db
    .selectFrom('latest_drift')
    .crossJoin('agents')
    .select(['agents.node_id', 'agents.name', 'latest_drift.drift_id'])
    .whereRef('agents.node_id', '=', 'latest_drift.node_id')
    .where('latest_drift.status', '=', 'failed')
    .where('agents.status', '=', 'approved'),
);

/** Agents whose newest apply failed, if the apply is still stored. */
export const agentsWithFailedApply = defineQuery('reconcile/failed applies', (db) =>
  db
    .selectFrom('agent_state')
    .crossJoin('operations')
    .crossJoin('agents')
    .select(['agents.node_id', 'agents.name', 'operations.operation_id'])
    .whereRef('operations.operation_id', '=', 'agent_state.failed_apply_id')
    .whereRef('agents.node_id', '=', 'agent_state.node_id')
    .where('agent_state.failed_apply_id', 'is not', null)
    .where('agents.status', '=', 'approved'),
);

export const agentsNotAsApplied = defineQuery('reconcile/applied state', (db) =>
  db
    .selectFrom((e) =>
      e
        .selectFrom('applied_resources')
        .select(['node_id', 'state', (f) => f.fn.countAll<number>().as('count')])
        .where('state', '!=', 'applied')
        .groupBy(['node_id', 'state'])
        .as('off'),
    )
    .crossJoin('agents')
    .select(['agents.node_id', 'agents.name', 'off.state', 'off.count'])
    .whereRef('agents.node_id', '=', 'off.node_id')
    .where('agents.status', '=', 'approved'),
);

/** Agents that have not applied the newest revision of some modules, with the number of these modules. */
export const agentsOutdated = defineQuery('reconcile/outdated', (db) =>
  db
    .selectFrom((e) =>
      e
        .selectFrom('modules')
        .crossJoin('applied_modules')
        .select(['applied_modules.node_id', (f) => f.fn.countAll<number>().as('count')])
        .whereRef('applied_modules.module', '=', 'modules.name')
        .whereRef('applied_modules.revision', '<', 'modules.revision')
        .groupBy('applied_modules.node_id')
        .as('outdated'),
    )
    .crossJoin('agents')
    .select(['agents.node_id', 'agents.name', 'outdated.count'])
    .whereRef('agents.node_id', '=', 'outdated.node_id')
    .where('agents.status', '=', 'approved'),
);

/** The outdated modules of the given agents, with both revisions. */
export const outdatedOfAgents = defineQuery('reconcile/outdated of', (db, p: { node_ids: readonly string[] }, d) =>
  db
    .selectFrom('applied_modules')
    .innerJoin('modules', 'modules.name', 'applied_modules.module')
    .select(['applied_modules.node_id', 'applied_modules.module', 'applied_modules.revision'])
    .select('modules.revision as newest')
    .where(d.isIn('applied_modules.node_id', p.node_ids))
    .whereRef('applied_modules.revision', '<', 'modules.revision')
    .orderBy('applied_modules.node_id')
    .orderBy('applied_modules.module'),
);

/** The given agents, each with its failed apply, if any, and the modules of its most recently finished apply. */
export const agentsOff = defineQuery('reconcile/agents', (db, p: { node_ids: readonly string[] }, d) =>
  db
    .selectFrom('agents')
    .leftJoin('agent_state', 'agent_state.node_id', 'agents.node_id')
    .leftJoin('operations as failed', 'failed.operation_id', 'agent_state.failed_apply_id')
    .leftJoin('operations as applied', 'applied.operation_id', 'agent_state.snapshot_operation_id')
    .select(['agents.node_id', 'agents.name', 'agents.last_seen_at', 'agents.connected_at'])
    .select((e) => e.fn.coalesce('failed.modules', 'applied.modules').as('modules'))
    .select([
      'failed.operation_id',
      'failed.status',
      'failed.finished_at',
      'failed.error',
      'failed.summary',
      'failed.run_id',
    ])
    .where(d.isIn('agents.node_id', p.node_ids)),
);

/**
 * Maximum size in bytes of a drift record whose resources {@link driftOfAgents} returns. Larger records are not read.
 */
const maxRecordBytes = 8 * 1024;

/**
 * Drift states of the given agents, starting after a given drift state. For each agent, the drift state of the applied
 * state comes first, followed by those of audit assignments by name. Limited to about `bytes` in total, but returns at
 * least one drift state.
 */
export const driftOfAgents = defineQuery(
  'reconcile/drift',
  (db, p: { node_ids: readonly string[]; after_node: string; after_scope: string; bytes: number }, d) =>
    db
      .selectFrom((e) =>
        e
          .selectFrom((inner) =>
            inner
              .selectFrom('drift_states')
              .select(['node_id', 'scope'])
              .select(bytesOf('scope', 'drifted', 'accepted').as('bytes'))
              .where(d.isIn('node_id', p.node_ids))
              .where((w) => w(w.refTuple('node_id', 'scope'), '>', w.tuple(p.after_node, p.after_scope)))
              .orderBy('node_id')
              .orderBy('scope')
              .limit(pageRows)
              .as('sized'),
          )
          .select(['node_id', 'scope'])
          .select(bytesBefore(['node_id', 'scope']).as('before'))
          .as('cut'),
      )
      .innerJoin('drift_states', (j) =>
        j.onRef('drift_states.node_id', '=', 'cut.node_id').onRef('drift_states.scope', '=', 'cut.scope'),
      )
      .leftJoin('drift_records', 'drift_records.drift_id', 'drift_states.drift_id')
      .select([
        'drift_states.node_id',
        'drift_states.scope',
        'drift_states.since',
        'drift_states.drifted',
        'drift_states.accepted',
        'drift_records.drift_id',
        'drift_records.checked_at',
        'drift_records.summary',
      ])
      .select((e) =>
        e
          .case()
          .when(bytesOf('drift_records.resources'), '<=', maxRecordBytes)
          .then(e.ref('drift_records.resources'))
          .end()
          .as('record_resources'),
      )
      .where('cut.before', '<', p.bytes)
      .orderBy('drift_states.node_id')
      .orderBy('drift_states.scope'),
);

export const failedChecksOfAgents = defineQuery(
  'reconcile/failed checks of',
  (db, p: { node_ids: readonly string[] }, d) =>
    db
      .selectFrom('latest_drift')
      .innerJoin('drift_records', 'drift_records.drift_id', 'latest_drift.drift_id')
      .select(['latest_drift.node_id', 'drift_records.drift_id', 'drift_records.checked_at', 'drift_records.error'])
      .where('latest_drift.status', '=', 'failed')
      .where(d.isIn('latest_drift.node_id', p.node_ids)),
);

/** For each of the given agents and each state, the first resources that could not be applied or removed. */
export const unfinishedOfAgents = defineQuery(
  'reconcile/unfinished',
  (db, p: { node_ids: readonly string[]; count: number }, d) =>
    db
      .selectFrom((e) =>
        e
          .selectFrom('applied_resources')
          .select(['node_id', 'state', 'type', 'identity', 'reason'])
          .select((f) =>
            f.fn
              .agg<number>('row_number')
              .over((o) => o.partitionBy(['node_id', 'state']).orderBy('key'))
              .as('position'),
          )
          .where('state', '!=', 'applied')
          .where(d.isIn('node_id', p.node_ids))
          .as('numbered'),
      )
      .select(['node_id', 'state', 'type', 'identity', 'reason'])
      .where('position', '<=', p.count)
      .orderBy('node_id')
      // Sorts unapplied resources first, because they are more severe.
      .orderBy('state', 'desc')
      .orderBy('position'),
);
