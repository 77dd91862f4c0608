import type { DriftAcceptance } from '@muster/protocol/http';
import type { JsonText } from '../json-text.ts';
import { defineQuery } from '../query.ts';

/** Queries for the current drift of agents. */

export const driftState = defineQuery('drift state/get', (db, p: { node_id: string; scope: string }) =>
  db.selectFrom('drift_states').selectAll().where('node_id', '=', p.node_id).where('scope', '=', p.scope),
);

export const putDriftState = defineQuery(
  'drift state/put',
  (
    db,
    p: {
      node_id: string;
      scope: string;
      drifted: JsonText<Record<string, string[]>>;
      since: number;
      drift_id: string | null;
      fingerprints: JsonText<Record<string, string>> | null;
      accepted: JsonText<DriftAcceptance> | null;
    },
    d,
  ) =>
    db
      .insertInto('drift_states')
      .values({
        node_id: p.node_id,
        scope: p.scope,
        drifted: p.drifted,
        since: p.since,
        drift_id: d.typed(p.drift_id, 'text'),
        fingerprints: d.typed(p.fingerprints, 'text') as never,
        accepted: d.typed(p.accepted, 'text') as never,
      })
      .onConflict((c) =>
        c.columns(['node_id', 'scope']).doUpdateSet({
          drifted: (e) => e.ref('excluded.drifted'),
          since: (e) => e.ref('excluded.since'),
          drift_id: (e) => e.ref('excluded.drift_id'),
          fingerprints: (e) => e.ref('excluded.fingerprints'),
          accepted: (e) => e.ref('excluded.accepted'),
        }),
      ),
);

/** For preconditions: returns a row unless the acceptance has changed since it was read. */
export const stillAccepted = defineQuery(
  'drift state/still accepted',
  (db, p: { node_id: string; scope: string; accepted: JsonText<DriftAcceptance> | '' }) =>
    db
      .selectFrom('drift_states')
      .select('node_id')
      .where('node_id', '=', p.node_id)
      .where('scope', '=', p.scope)
      .where((e) => e(e.fn.coalesce('accepted', e.val('')), '=', p.accepted)),
);

/** The drift state whose newest record has this ID. */
export const driftStateOfRecord = defineQuery('drift state/of record', (db, p: { node_id: string; drift_id: string }) =>
  db.selectFrom('drift_states').selectAll().where('node_id', '=', p.node_id).where('drift_id', '=', p.drift_id),
);

/**
 * Accepts the drift, or revokes the acceptance if `p.accepted` is null. Changes nothing if the drift state has changed
 * since the record `drift_id`.
 * @param p.fingerprints used only for a drift state from an earlier release, which has no fingerprints
 */
export const setAccepted = defineQuery(
  'drift state/set accepted',
  (
    db,
    p: {
      node_id: string;
      drift_id: string;
      fingerprints: JsonText<Record<string, string>> | null;
      accepted: JsonText<DriftAcceptance> | null;
    },
    d,
  ) =>
    db
      .updateTable('drift_states')
      .set((e) => ({
        fingerprints: e.fn.coalesce('fingerprints', d.typed(p.fingerprints, 'text')) as never,
        accepted: p.accepted,
      }))
      .where('node_id', '=', p.node_id)
      .where('drift_id', '=', p.drift_id),
);

export const deleteDriftState = defineQuery('drift state/delete', (db, p: { node_id: string; scope: string }) =>
  db.deleteFrom('drift_states').where('node_id', '=', p.node_id).where('scope', '=', p.scope),
);

export const deleteDriftStatesOf = defineQuery('drift state/delete all of agent', (db, p: { node_id: string }) =>
  db.deleteFrom('drift_states').where('node_id', '=', p.node_id),
);

export const deleteDriftScope = defineQuery('drift state/delete scope', (db, p: { scope: string }) =>
  db.deleteFrom('drift_states').where('scope', '=', p.scope),
);

/** Deletes the drift states in a scope, except those of agents in a run. */
export const deleteDriftBeside = defineQuery(
  'drift state/delete except run',
  (db, p: { scope: string; run_id: string }) =>
    db
      .deleteFrom('drift_states')
      .where('scope', '=', p.scope)
      .where((w) =>
        w.not(
          w.exists(
            w
              .selectFrom('run_results')
              .select('run_results.node_id')
              .where('run_results.run_id', '=', p.run_id)
              .whereRef('run_results.node_id', '=', 'drift_states.node_id'),
          ),
        ),
      ),
);
