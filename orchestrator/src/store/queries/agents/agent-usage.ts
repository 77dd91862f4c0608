import { type RawBuilder, sql } from 'kysely';
import { defineQuery } from '../../query.ts';

/** The amount of data that each agent caused to be stored on a day. */

export const usageOf = defineQuery('usage/of agent', (db, p: { node_id: string }) =>
  db.selectFrom('agent_usage').select(['day', 'bytes', 'events', 'hints', 'limited']).where('node_id', '=', p.node_id),
);

/**
 * Stores a day's usage. For the same day, counts only increase and bits are only added, so transactions of one agent
 * may commit in any order.
 */
export const putUsage = defineQuery(
  'usage/put',
  (db, p: { node_id: string; day: number; bytes: number; events: number; hints: number; limited: number }, d) => {
    const ofSameDay = (column: string, combined: RawBuilder<number>): RawBuilder<number> =>
      sql`case when agent_usage.day = excluded.day then ${combined} else ${sql.ref(`excluded.${column}`)} end`;
    const larger = (column: string) =>
      ofSameDay(column, d.greatest<number>(sql.ref(`agent_usage.${column}`), sql.ref(`excluded.${column}`)));
    return db
      .insertInto('agent_usage')
      .values({
        node_id: p.node_id,
        day: p.day,
        bytes: p.bytes,
        events: p.events,
        hints: p.hints,
        limited: p.limited,
      })
      .onConflict((c) =>
        c.column('node_id').doUpdateSet({
          day: (e) => e.ref('excluded.day'),
          bytes: larger('bytes'),
          events: larger('events'),
          hints: larger('hints'),
          limited: ofSameDay('limited', sql`agent_usage.limited | excluded.limited`),
        }),
      );
  },
);

export const deleteUsage = defineQuery('usage/delete', (db, p: { node_id: string }) =>
  db.deleteFrom('agent_usage').where('node_id', '=', p.node_id),
);
