import { defineQuery } from './query.ts';

/** How many there are, for metrics. Each by an index, and of what has ended nothing is counted. */

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

/** Messages to channels that wait, up to `most`. */
export const waitingDeliveries = defineQuery('census/deliveries', (db, p: { most: number }) =>
  db
    .selectFrom(db.selectFrom('deliveries').select('place').limit(p.most).as('waiting'))
    .select((e) => e.fn.countAll<number>().as('count')),
);

export const countOfActiveTerminals = defineQuery('census/terminals', (db) =>
  db
    .selectFrom('terminal_sessions')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('status', '=', 'active'),
);
