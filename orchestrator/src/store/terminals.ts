import { defineQuery, defineVariants } from './query.ts';

type Status = 'active' | 'closed' | 'interrupted';

export const terminalById = defineQuery('terminals/by id', (db, p: { session_id: string }) =>
  db.selectFrom('terminal_sessions').selectAll().where('session_id', '=', p.session_id),
);

/** Newest first. */
export const terminals = defineVariants(
  'terminals/list',
  (db, p: { status: Status; limit: number; offset: number }, _, v: { status: boolean }) => {
    let query = db.selectFrom('terminal_sessions').selectAll();
    if (v.status) query = query.where('status', '=', p.status);
    return query.orderBy('session_id', 'desc').limit(p.limit).offset(p.offset);
  },
);

/** Those that are open, of whoever they are: as many as agents allow at a time. */
export const activeTerminals = defineQuery('terminals/active', (db) =>
  db.selectFrom('terminal_sessions').selectAll().where('status', '=', 'active'),
);

/** The open ones of one operator. */
export const activeTerminalsOf = defineQuery('terminals/active of', (db, p: { operator_id: string }) =>
  db
    .selectFrom('terminal_sessions')
    .selectAll()
    .where('status', '=', 'active')
    .where('operator_id', '=', p.operator_id),
);

/** Sessions that ended before a time, in the order in which they were opened: a page of those opened before another. */
export const endedTerminals = defineQuery(
  'terminals/ended',
  (db, p: { after: string; below: string; before: number; limit: number }) =>
    db
      .selectFrom('terminal_sessions')
      .select('session_id')
      .where('session_id', '>', p.after)
      .where('session_id', '<', p.below)
      .where('status', '<>', 'active')
      .where('closed_at', '<', p.before)
      .orderBy('session_id')
      .limit(p.limit),
);

export const deleteTerminals = defineQuery('terminals/delete', (db, p: { ids: readonly string[] }, d) =>
  db.deleteFrom('terminal_sessions').where(d.isIn('session_id', p.ids)).where('status', '<>', 'active'),
);

export const insertTerminal = defineQuery(
  'terminals/insert',
  (db, p: { session_id: string; node_id: string; operator_id: string; opened_at: number }) =>
    db.insertInto('terminal_sessions').values({
      session_id: p.session_id,
      node_id: p.node_id,
      operator_id: p.operator_id,
      status: 'active',
      opened_at: p.opened_at,
      closed_at: null,
    }),
);

/** Changes nothing when it has ended already. */
export const endTerminal = defineQuery(
  'terminals/end',
  (db, p: { session_id: string; status: Status; closed_at: number }) =>
    db
      .updateTable('terminal_sessions')
      .set({ status: p.status, closed_at: p.closed_at })
      .where('session_id', '=', p.session_id)
      .where('status', '=', 'active'),
);

/** Whatever is open of an operator, also what was opened in this very moment. */
export const endTerminalsOf = defineQuery('terminals/end all of', (db, p: { operator_id: string; closed_at: number }) =>
  db
    .updateTable('terminal_sessions')
    .set({ status: 'closed', closed_at: p.closed_at })
    .where('status', '=', 'active')
    .where('operator_id', '=', p.operator_id),
);
