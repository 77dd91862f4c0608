import { createIndex } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/** Records the key of every agent, and allows one current key per agent, so that an agent can rotate its key. */
export const agentKeys: Migration = {
  version: 14,
  name: 'agent keys',
  statements: (build) => {
    const { db } = build;
    return [
      // Earlier releases did not record agent keys in this table.
      db
        .insertInto('agent_keys')
        .columns(['public_key', 'node_id'])
        .expression(
          db
            .selectFrom('agents')
            .select(['agents.public_key', 'agents.node_id'])
            .where((w) =>
              w.not(
                w.exists(
                  w
                    .selectFrom('agent_keys')
                    .select('agent_keys.node_id')
                    .whereRef('agent_keys.node_id', '=', 'agents.node_id'),
                ),
              ),
            ),
        ),
      createIndex(build, 'agent_keys_current', 'agent_keys', ['node_id']).unique().where('valid_until', 'is', null),
    ];
  },
};
