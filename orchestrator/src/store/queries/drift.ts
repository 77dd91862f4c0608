import type { ResourceResult, Summary } from '@muster/protocol';
import type { DriftAcceptance } from '@muster/protocol/http';
import type { JsonText } from '../json-text.ts';
import { bytesBefore, bytesOf } from '../page-bytes.ts';
import { defineQuery, defineVariants } from '../query.ts';

type DriftStatus = 'in_sync' | 'drifted' | 'failed' | 'cancelled';

export const insertDriftRecord = defineQuery(
  'drift/insert',
  (
    db,
    p: {
      drift_id: string;
      node_id: string;
      operation_id: string;
      status: DriftStatus;
      trigger: 'operator' | 'schedule' | 'watch' | 'audit';
      checked_at: number;
      snapshot_operation_id: string;
      summary: JsonText<Summary>;
      resources: JsonText<ResourceResult[]>;
      error: string | null;
      accepted: JsonText<DriftAcceptance> | null;
    },
  ) =>
    db.insertInto('drift_records').values({
      drift_id: p.drift_id,
      node_id: p.node_id,
      operation_id: p.operation_id,
      status: p.status,
      trigger: p.trigger,
      checked_at: p.checked_at,
      snapshot_operation_id: p.snapshot_operation_id,
      summary: p.summary,
      resources: p.resources,
      error: p.error,
      accepted: p.accepted,
    }),
);

export const driftById = defineQuery('drift/by id', (db, p: { drift_id: string }) =>
  db.selectFrom('drift_records').selectAll().where('drift_id', '=', p.drift_id),
);

export const setRecordAccepted = defineQuery(
  'drift/set accepted',
  (db, p: { drift_id: string; accepted: JsonText<DriftAcceptance> | null }) =>
    db.updateTable('drift_records').set({ accepted: p.accepted }).where('drift_id', '=', p.drift_id),
);

/** The IDs of an agent's records, newest first. */
export const driftIds = defineVariants(
  'drift/list',
  (db, p: { node_id: string; status: DriftStatus; limit: number; offset: number }, _d, v: { status?: boolean }) => {
    let query = db.selectFrom('drift_records').select('drift_id').where('node_id', '=', p.node_id);
    if (v.status) query = query.where('status', '=', p.status);
    return query.orderBy('drift_id', 'desc').limit(p.limit).offset(p.offset);
  },
);

/** The records with the given IDs, newest first. Limited to about `bytes` in total, but returns at least one record. */
export const driftRecords = defineQuery('drift/records', (db, p: { ids: readonly string[]; bytes: number }, d) =>
  db
    .selectFrom((e) =>
      e
        .selectFrom((inner) =>
          inner
            .selectFrom('drift_records')
            .select('drift_id')
            .select(bytesOf('summary', 'resources', 'error', 'accepted').as('bytes'))
            .where(d.isIn('drift_id', p.ids))
            .as('sized'),
        )
        .select('drift_id')
        .select(bytesBefore(['drift_id'], 'desc').as('before'))
        .as('cut'),
    )
    .innerJoin('drift_records', 'drift_records.drift_id', 'cut.drift_id')
    .selectAll('drift_records')
    .where('cut.before', '<', p.bytes)
    .orderBy('drift_records.drift_id', 'desc'),
);

/** Sets an agent's latest record. Changes nothing if the agent has a newer record. */
export const putLatestDrift = defineQuery(
  'drift/put latest',
  (db, p: { node_id: string; drift_id: string; status: DriftStatus }) =>
    db
      .insertInto('latest_drift')
      .values({ node_id: p.node_id, drift_id: p.drift_id, status: p.status })
      .onConflict((c) =>
        c
          .column('node_id')
          .doUpdateSet({ drift_id: (e) => e.ref('excluded.drift_id'), status: (e) => e.ref('excluded.status') })
          .whereRef('excluded.drift_id', '>', 'latest_drift.drift_id'),
      ),
);

/** The ID of each agent's latest record, newest first, with the columns that selectors read. */
export const latestDrifts = defineVariants(
  'drift/latest of each',
  (
    db,
    p: { status: DriftStatus; below: string; limit: number; offset: number },
    d,
    v: { status?: boolean; below?: boolean; labels?: boolean },
  ) => {
    let query = db
      .selectFrom('latest_drift')
      .innerJoin('agents', 'agents.node_id', 'latest_drift.node_id')
      .select('latest_drift.drift_id')
      .$if(v.labels === true, (labeled) =>
        labeled
          .select('agents.attributes')
          .select((e) =>
            e
              .selectFrom('agent_tags')
              .select(d.objectOf('agent_tags.key', 'agent_tags.value').as('tags'))
              .whereRef('agent_tags.node_id', '=', 'latest_drift.node_id')
              .$asScalar()
              .$castTo<JsonText<Record<string, string>>>()
              .as('tags'),
          ),
      );
    if (v.status) query = query.where('latest_drift.status', '=', p.status);
    if (v.below) query = query.where('latest_drift.drift_id', '<', p.below);
    return query.orderBy('latest_drift.drift_id', 'desc').limit(p.limit).offset(p.offset);
  },
);

export const deleteLatestDriftOf = defineQuery('drift/delete latest', (db, p: { node_id: string }) =>
  db.deleteFrom('latest_drift').where('node_id', '=', p.node_id),
);

/** The largest record ID, which the next ID must exceed. */
export const lastDriftId = defineQuery('drift/last id', (db) =>
  db.selectFrom('drift_records').select('drift_id').orderBy('drift_id', 'desc').limit(1),
);
