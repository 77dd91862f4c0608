import { defineQuery } from '../../query.ts';

/** Returns a row if the agent has more than `capacity` tags. */
export const tagBeyond = defineQuery('tags/beyond', (db, p: { node_id: string; capacity: number }) =>
  db.selectFrom('agent_tags').select('key').where('node_id', '=', p.node_id).orderBy('key').limit(1).offset(p.capacity),
);

export const tagValues = defineQuery('tags/values', (db) =>
  db
    .selectFrom('agent_tags')
    .select((e) => ['key', 'value', e.fn.countAll<number>().as('agents')])
    .groupBy(['key', 'value'])
    .orderBy('key')
    .orderBy('value'),
);

export const putTag = defineQuery('tags/put', (db, p: { node_id: string; key: string; value: string }) =>
  db
    .insertInto('agent_tags')
    .values({ node_id: p.node_id, key: p.key, value: p.value })
    .onConflict((c) => c.columns(['node_id', 'key']).doUpdateSet({ value: (e) => e.ref('excluded.value') })),
);

export const deleteTag = defineQuery('tags/delete', (db, p: { node_id: string; key: string }) =>
  db.deleteFrom('agent_tags').where('node_id', '=', p.node_id).where('key', '=', p.key),
);

export const deleteTags = defineQuery('tags/delete all', (db, p: { node_id: string }) =>
  db.deleteFrom('agent_tags').where('node_id', '=', p.node_id),
);
