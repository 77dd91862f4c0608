import { defineQuery } from '../query.ts';

/** What agents have caused to be stored, by day. */

export const usageOf = defineQuery('usage/of agent', (db, p: { node_id: string }) =>
  db.selectFrom('agent_usage').select(['day', 'bytes', 'events', 'hints']).where('node_id', '=', p.node_id),
);

export const putUsage = defineQuery(
  'usage/put',
  (db, p: { node_id: string; day: number; bytes: number; events: number; hints: number }) =>
    db
      .insertInto('agent_usage')
      .values({ node_id: p.node_id, day: p.day, bytes: p.bytes, events: p.events, hints: p.hints })
      .onConflict((c) =>
        c.column('node_id').doUpdateSet({
          day: (e) => e.ref('excluded.day'),
          bytes: (e) => e.ref('excluded.bytes'),
          events: (e) => e.ref('excluded.events'),
          hints: (e) => e.ref('excluded.hints'),
        }),
      ),
);

export const deleteUsage = defineQuery('usage/delete', (db, p: { node_id: string }) =>
  db.deleteFrom('agent_usage').where('node_id', '=', p.node_id),
);
