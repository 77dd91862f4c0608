import { defineQuery, defineVariants } from '../query.ts';

export const operatorById = defineQuery('operators/by id', (db, p: { operator_id: string }) =>
  db.selectFrom('operators').selectAll().where('operator_id', '=', p.operator_id),
);

export const operators = defineVariants(
  'operators/list',
  (db, p: { limit: number; offset: number }, _d, v: { removed: boolean }) => {
    const query = db.selectFrom('operators').selectAll().orderBy('username').limit(p.limit).offset(p.offset);
    return v.removed ? query : query.where('removed_at', 'is', null);
  },
);

export const anyOperator = defineQuery('operators/any', (db) =>
  db.selectFrom('operators').select('operator_id').limit(1),
);

export const operatorTaking = defineQuery('operators/taking name', (db, p: { username: string }) =>
  db.selectFrom('operators').select('operator_id').where('username', '=', p.username),
);

export const insertOperator = defineQuery(
  'operators/insert',
  (
    db,
    p: {
      operator_id: string;
      public_key: string;
      username: string;
      role: 'admin' | 'operator';
      added_at: number;
      added_by: string;
      bootstrap: boolean;
    },
  ) =>
    db.insertInto('operators').values({
      operator_id: p.operator_id,
      public_key: p.public_key,
      username: p.username,
      role: p.role,
      added_at: p.added_at,
      added_by: p.added_by,
      bootstrap: p.bootstrap,
      removed_at: null,
      removed_by: null,
    }),
);

/** Changes nothing if the operator has already been removed. */
export const markOperatorRemoved = defineQuery(
  'operators/remove',
  (db, p: { operator_id: string; removed_at: number; removed_by: string }) =>
    db
      .updateTable('operators')
      .set({ removed_at: p.removed_at, removed_by: p.removed_by })
      .where('operator_id', '=', p.operator_id)
      .where('removed_at', 'is', null),
);

export const liveAdmin = defineQuery('operators/live admin', (db) =>
  db.selectFrom('operators').select('operator_id').where('role', '=', 'admin').where('removed_at', 'is', null).limit(1),
);

/** For preconditions: returns a row if the operator exists and has not been removed. */
export const liveOperator = defineQuery('operators/live', (db, p: { operator_id: string }) =>
  db
    .selectFrom('operators')
    .select('operator_id')
    .where('operator_id', '=', p.operator_id)
    .where('removed_at', 'is', null),
);

/** Operators that the given operators added. Includes removed operators. */
export const operatorsAddedBy = defineQuery('operators/added by', (db, p: { ids: readonly string[] }, d) =>
  db
    .selectFrom('operators')
    .select(['operator_id', 'username', 'removed_at'])
    .where(d.isIn('added_by', p.ids))
    .orderBy('username'),
);

/** Modules whose newest revision was uploaded by one of the given operators. */
export const modulesUploadedBy = defineQuery('modules/uploaded by', (db, p: { ids: readonly string[] }, d) =>
  db.selectFrom('modules').select('name').where(d.isIn('uploaded_by', p.ids)).orderBy('name'),
);

export const assignmentsCreatedBy = defineQuery('assignments/created by', (db, p: { ids: readonly string[] }, d) =>
  db.selectFrom('assignments').select('name').where(d.isIn('created_by', p.ids)).orderBy('name'),
);

export const channelsCreatedBy = defineQuery('channels/created by', (db, p: { ids: readonly string[] }, d) =>
  db.selectFrom('channels').select(['channel_id', 'name']).where(d.isIn('created_by', p.ids)).orderBy('name'),
);

export const openRunsOf = defineQuery('runs/open of operators', (db, p: { ids: readonly string[] }, d) =>
  db
    .selectFrom('runs')
    .select('run_id')
    .where('finished_at', 'is', null)
    .where(d.isIn('requested_by', p.ids))
    .orderBy('run_id'),
);

/** The given operators' open operations that do not belong to a run, oldest first. */
export const openOperationsOf = defineQuery(
  'operations/open of operators',
  (db, p: { ids: readonly string[]; limit: number }, d) =>
    db
      .selectFrom('operations')
      .select('operation_id')
      .where('status', 'in', ['queued', 'running'])
      .where('run_id', 'is', null)
      .where(d.isIn('requested_by', p.ids))
      .orderBy('operation_id')
      .limit(p.limit),
);

export const removedOperators = defineQuery('operators/removed', (db, p: { ids: readonly string[] }, d) =>
  db
    .selectFrom('operators')
    .select('operator_id')
    .where(d.isIn('operator_id', p.ids))
    .where('removed_at', 'is not', null),
);

export const insertWebCode = defineQuery(
  'web codes/insert',
  (db, p: { code_hash: string; operator_id: string; session_hash: string; signed_in_at: number; expires_at: number }) =>
    db.insertInto('web_login_codes').values({
      code_hash: p.code_hash,
      operator_id: p.operator_id,
      session_hash: p.session_hash,
      signed_in_at: p.signed_in_at,
      expires_at: p.expires_at,
    }),
);

export const webCodeByHash = defineQuery('web codes/by hash', (db, p: { code_hash: string }) =>
  db.selectFrom('web_login_codes').selectAll().where('code_hash', '=', p.code_hash),
);

/** Consumes a web login code. Changes nothing if the code has already been used or has expired. */
export const consumeWebCode = defineQuery('web codes/consume', (db, p: { code_hash: string; now: number }) =>
  db.deleteFrom('web_login_codes').where('code_hash', '=', p.code_hash).where('expires_at', '>', p.now),
);

export const deleteWebCodesOf = defineQuery('web codes/delete of operator', (db, p: { operator_id: string }) =>
  db.deleteFrom('web_login_codes').where('operator_id', '=', p.operator_id),
);

export const deleteExpiredWebCodes = defineQuery('web codes/delete expired', (db, p: { now: number }) =>
  db.deleteFrom('web_login_codes').where('expires_at', '<=', p.now),
);
