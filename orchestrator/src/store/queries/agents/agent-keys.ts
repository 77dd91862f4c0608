import { defineQuery } from '../../query.ts';

/**
 * Agent keys. Each agent has one current key, whose `valid_until` is null. A previous key is valid until `valid_until`.
 */

export const agentKey = defineQuery('agent keys/by key', (db, p: { public_key: string }) =>
  db
    .selectFrom('agent_keys')
    .innerJoin('agents', 'agents.node_id', 'agent_keys.node_id')
    .select(['agent_keys.node_id', 'agent_keys.valid_until'])
    .where('agent_keys.public_key', '=', p.public_key),
);

/** Returns the given keys that are recorded, with their agents. */
export const agentKeysAmong = defineQuery('agent keys/among', (db, p: { public_keys: readonly string[] }, d) =>
  db
    .selectFrom('agent_keys')
    .innerJoin('agents', 'agents.node_id', 'agent_keys.node_id')
    .select([
      'agent_keys.public_key',
      'agent_keys.node_id',
      'agent_keys.valid_until',
      'agents.status',
      'agents.first_seen_at',
      'agents.last_seen_at',
    ])
    .where(d.isIn('agent_keys.public_key', p.public_keys)),
);

/** For preconditions: returns a row unless the key has changed since it was read. */
export const agentKeyUnchanged = defineQuery(
  'agent keys/stands',
  (db, p: { public_key: string; node_id: string; valid_until: number }) =>
    db
      .selectFrom('agent_keys')
      .select('node_id')
      .where('public_key', '=', p.public_key)
      .where('node_id', '=', p.node_id)
      .where((e) => e(e.fn.coalesce('valid_until', e.lit(0)), '=', p.valid_until)),
);

export const insertAgentKey = defineQuery('agent keys/insert', (db, p: { public_key: string; node_id: string }) =>
  db.insertInto('agent_keys').values({ public_key: p.public_key, node_id: p.node_id, valid_until: null }),
);

/** Records a previous key that was replaced before it could be recorded. Changes nothing if the key exists. */
export const insertFormerAgentKey = defineQuery(
  'agent keys/insert former',
  (db, p: { public_key: string; node_id: string; valid_until: number }) =>
    db
      .insertInto('agent_keys')
      .values({ public_key: p.public_key, node_id: p.node_id, valid_until: p.valid_until })
      .onConflict((conflict) => conflict.column('public_key').doNothing()),
);

/** Converts the agent's current key to a previous key. Changes nothing if the agent has a different current key. */
export const endAgentKey = defineQuery(
  'agent keys/end',
  (db, p: { public_key: string; node_id: string; valid_until: number }) =>
    db
      .updateTable('agent_keys')
      .set({ valid_until: p.valid_until })
      .where('public_key', '=', p.public_key)
      .where('node_id', '=', p.node_id)
      .where('valid_until', 'is', null),
);

/** Shortens the validity of the agent's previous keys to `valid_until`. */
export const shortenAgentKeys = defineQuery('agent keys/shorten', (db, p: { node_id: string; valid_until: number }) =>
  db
    .updateTable('agent_keys')
    .set({ valid_until: p.valid_until })
    .where('node_id', '=', p.node_id)
    .where('valid_until', '>', p.valid_until),
);

/** Returns a row if the agent has more than `capacity` keys. */
export const agentKeyBeyond = defineQuery('agent keys/beyond', (db, p: { node_id: string; capacity: number }) =>
  db
    .selectFrom('agent_keys')
    .select('public_key')
    .where('node_id', '=', p.node_id)
    .orderBy('public_key')
    .limit(1)
    .offset(p.capacity),
);
