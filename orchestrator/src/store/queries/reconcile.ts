import { defineQuery } from '../query.ts';

/**
 * What is off with approved agents. Each of these reads what is off, and nothing of agents that are in order: a cross join
 * keeps SQLite from beginning with the agents, of which it knows no better than that they are few.
 */

/** One row for what was applied and one for each audit assignment that the agent deviates from. */
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

/** Of one whose operation is not kept any more nothing is said. */
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

/** Of these agents, with the modules of the newest apply that is known to have ended. */
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

/** Of these agents, what was applied before audit assignments, and those by name. */
export const driftOfAgents = defineQuery('reconcile/drift', (db, p: { node_ids: readonly string[] }, d) =>
  db
    .selectFrom('drift_states')
    .innerJoin('drift_records', 'drift_records.drift_id', 'drift_states.drift_id')
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
    .where(d.isIn('drift_states.node_id', p.node_ids))
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
