import { defineQuery } from '../query.ts';

/** Counts for metrics. Each query uses an index and does not read finished work. */

export const agentsByStatus = defineQuery('census/agents', (db) =>
  db
    .selectFrom('agents')
    .select(['status', (e) => e.fn.countAll<number>().as('count')])
    .groupBy('status'),
);

export const openOperationsByStatus = defineQuery('census/operations', (db) =>
  db
    .selectFrom('operations')
    .select(['status', (e) => e.fn.countAll<number>().as('count')])
    .where('status', 'in', ['queued', 'running'])
    .groupBy('status'),
);

/** Queued deliveries, counted up to `max`. */
export const waitingDeliveries = defineQuery('census/deliveries', (db, p: { max: number }) =>
  db
    .selectFrom(db.selectFrom('deliveries').select('place').limit(p.max).as('waiting'))
    .select((e) => e.fn.countAll<number>().as('count')),
);

/** Pending agents. Their number is limited, so the caller counts the rows. */
export const pendingAgents = defineQuery('census/pending agents', (db) =>
  db.selectFrom('agents').select('node_id').where('status', '=', 'pending'),
);

export const countOfLostAgents = defineQuery('census/lost agents', (db) =>
  db
    .selectFrom('agents')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('lost_at', 'is not', null)
    .where('status', '=', 'approved'),
);

/** Approved agents without drift, grouped by the outcome of their newest check. */
export const agentsByLatestDrift = defineQuery('census/latest drift', (db) =>
  db
    .selectFrom('agents')
    .innerJoin('latest_drift', 'latest_drift.node_id', 'agents.node_id')
    .leftJoin('drift_states', 'drift_states.node_id', 'agents.node_id')
    .select(['latest_drift.status', (e) => e.fn.countAll<number>().as('count')])
    .where('agents.status', '=', 'approved')
    .where('drift_states.node_id', 'is', null)
    .groupBy('latest_drift.status'),
);

/** Approved agents without a successful apply. */
export const agentsNeverApplied = defineQuery('census/never applied', (db) =>
  db
    .selectFrom('agents')
    .leftJoin('agent_state', 'agent_state.node_id', 'agents.node_id')
    .select('agents.node_id')
    .where('agents.status', '=', 'approved')
    .where('agent_state.snapshot_operation_id', 'is', null),
);

export const countOfOpenRuns = defineQuery('census/runs', (db) =>
  db
    .selectFrom('runs')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('finished_at', 'is', null),
);

export const countOfActiveTerminals = defineQuery('census/terminals', (db) =>
  db
    .selectFrom('terminal_sessions')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('status', '=', 'active'),
);
