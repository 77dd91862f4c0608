import type { ResourceResult, Summary } from '@muster/protocol';
import type { JsonText } from './json-text.ts';
import { defineQuery, defineVariants } from './query.ts';

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
    }),
);

export const driftById = defineQuery('drift/by id', (db, p: { drift_id: string }) =>
  db.selectFrom('drift_records').selectAll().where('drift_id', '=', p.drift_id),
);

export const driftRecords = defineVariants(
  'drift/list',
  (
    db,
    p: { node_id: string; status: DriftStatus; limit: number },
    _d,
    v: { status?: boolean; conclusive?: boolean },
  ) => {
    let query = db.selectFrom('drift_records').selectAll().where('node_id', '=', p.node_id);
    // A check that failed says nothing of the machine.
    if (v.conclusive) query = query.where('status', 'in', ['in_sync', 'drifted']);
    return (v.status ? query.where('status', '=', p.status) : query).orderBy('drift_id', 'desc').limit(p.limit);
  },
);
