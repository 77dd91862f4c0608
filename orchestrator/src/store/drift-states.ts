import type { JsonText } from './json-text.ts';
import { defineQuery } from './query.ts';

/** Which machines have drifted, and in what. */

export const driftState = defineQuery('drift state/get', (db, p: { node_id: string; scope: string }) =>
  db.selectFrom('drift_states').selectAll().where('node_id', '=', p.node_id).where('scope', '=', p.scope),
);

export const putDriftState = defineQuery(
  'drift state/put',
  (db, p: { node_id: string; scope: string; drifted: JsonText<Record<string, string[]>>; since: number }) =>
    db
      .insertInto('drift_states')
      .values({ node_id: p.node_id, scope: p.scope, drifted: p.drifted, since: p.since })
      .onConflict((c) =>
        c.columns(['node_id', 'scope']).doUpdateSet({
          drifted: (e) => e.ref('excluded.drifted'),
          since: (e) => e.ref('excluded.since'),
        }),
      ),
);

export const deleteDriftState = defineQuery('drift state/delete', (db, p: { node_id: string; scope: string }) =>
  db.deleteFrom('drift_states').where('node_id', '=', p.node_id).where('scope', '=', p.scope),
);

export const deleteDriftStatesOf = defineQuery('drift state/delete all of agent', (db, p: { node_id: string }) =>
  db.deleteFrom('drift_states').where('node_id', '=', p.node_id),
);

/** Only machines that have drifted are looked through. */
export const deleteDriftScope = defineQuery('drift state/delete scope', (db, p: { scope: string }) =>
  db.deleteFrom('drift_states').where('scope', '=', p.scope),
);
