import { defineQuery, defineVariants } from '../query.ts';
import type { TerminalTicketsTable } from '../schema.ts';

type Status = 'active' | 'closed' | 'interrupted';

export const terminalById = defineQuery('terminals/by id', (db, p: { session_id: string }) =>
  db.selectFrom('terminal_sessions').selectAll().where('session_id', '=', p.session_id),
);

/** Terminal sessions, newest first. */
export const terminals = defineVariants(
  'terminals/list',
  (db, p: { status: Status; limit: number; offset: number }, _, v: { status: boolean }) => {
    let query = db.selectFrom('terminal_sessions').selectAll();
    if (v.status) query = query.where('status', '=', p.status);
    return query.orderBy('session_id', 'desc').limit(p.limit).offset(p.offset);
  },
);

/** Open terminal sessions whose process has ended. Unlimited, because agents limit their number. */
export const strandedTerminals = defineQuery('terminals/stranded', (db) =>
  db
    .selectFrom('terminal_sessions')
    .selectAll()
    .where('status', '=', 'active')
    .where((w) =>
      w.not(
        w.exists(
          w
            .selectFrom('replicas')
            .select('incarnation')
            .whereRef('replicas.incarnation', '=', 'terminal_sessions.home'),
        ),
      ),
    ),
);

/** Returns the name of the process that has an open terminal session, if it is alive. */
export const homeOfTerminal = defineQuery('terminals/home', (db, p: { session_id: string }) =>
  db
    .selectFrom('terminal_sessions')
    .innerJoin('replicas', 'replicas.incarnation', 'terminal_sessions.home')
    .select(['replicas.incarnation', 'replicas.name'])
    .where('session_id', '=', p.session_id)
    .where('status', '=', 'active'),
);

export const activeTerminalsOf = defineQuery('terminals/active of operator', (db, p: { operator_id: string }) =>
  db
    .selectFrom('terminal_sessions')
    .select('session_id')
    .where('status', '=', 'active')
    .where('operator_id', '=', p.operator_id)
    .orderBy('session_id'),
);

/** A page of terminal sessions that ended before a time, in the order in which they were opened. */
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
  (db, p: { session_id: string; node_id: string; operator_id: string; opened_at: number; home: string }) =>
    db.insertInto('terminal_sessions').values({
      session_id: p.session_id,
      node_id: p.node_id,
      operator_id: p.operator_id,
      status: 'active',
      opened_at: p.opened_at,
      closed_at: null,
      end_reason: null,
      transcript_sha256: null,
      transcript_bytes: null,
      home: p.home,
    }),
);

/** Changes nothing if the terminal session has already ended. */
export const endTerminal = defineQuery(
  'terminals/end',
  (
    db,
    p: {
      session_id: string;
      status: Status;
      closed_at: number;
      end_reason: string;
      transcript_sha256: string | null;
      transcript_bytes: number | null;
    },
  ) =>
    db
      .updateTable('terminal_sessions')
      .set({
        status: p.status,
        closed_at: p.closed_at,
        end_reason: p.end_reason,
        transcript_sha256: p.transcript_sha256,
        transcript_bytes: p.transcript_bytes,
      })
      .where('session_id', '=', p.session_id)
      .where('status', '=', 'active'),
);

export const knownTerminals = defineQuery('terminals/known', (db, p: { ids: readonly string[] }, d) =>
  db.selectFrom('terminal_sessions').select('session_id').where(d.isIn('session_id', p.ids)),
);

export const insertTicket = defineQuery('terminal tickets/insert', (db, p: TerminalTicketsTable) =>
  db.insertInto('terminal_tickets').values({
    ticket_hash: p.ticket_hash,
    session_id: p.session_id,
    operator_id: p.operator_id,
    username: p.username,
    mode: p.mode,
    token_hash: p.token_hash,
    expires_at_ms: p.expires_at_ms,
  }),
);

/** For preconditions: returns a row if a terminal session has more live tickets than `skip`. */
export const ticketBeyond = defineQuery(
  'terminal tickets/beyond',
  (db, p: { session_id: string; now_ms: number; skip: number }) =>
    db
      .selectFrom('terminal_tickets')
      .select('ticket_hash')
      .where('session_id', '=', p.session_id)
      .where('expires_at_ms', '>', p.now_ms)
      .limit(1)
      .offset(p.skip),
);

export const ticketExists = defineQuery('terminal tickets/exists', (db, p: { ticket_hash: string }) =>
  db.selectFrom('terminal_tickets').select('ticket_hash').where('ticket_hash', '=', p.ticket_hash),
);

/** The `session_id` of the sign-in session that requested a ticket, which its successors share. */
export const signInOfTicket = defineQuery('terminal tickets/sign-in', (db, p: { ticket_hash: string }) =>
  db
    .selectFrom('terminal_tickets')
    .innerJoin('sessions', 'sessions.token_hash', 'terminal_tickets.token_hash')
    .select('sessions.session_id as sign_in_id')
    .where('terminal_tickets.ticket_hash', '=', p.ticket_hash),
);

/** Deletes a ticket and returns it, so that only one of several concurrent requests can use it. */
export const takeTicket = defineQuery('terminal tickets/take', (db, p: { ticket_hash: string }) =>
  db
    .deleteFrom('terminal_tickets')
    .where('ticket_hash', '=', p.ticket_hash)
    .returning(['session_id', 'operator_id', 'username', 'mode', 'token_hash', 'expires_at_ms']),
);

/** Transfers the tickets of a sign-in session to the session that replaces it. */
export const moveTickets = defineQuery('terminal tickets/move', (db, p: { from: string; to: string }) =>
  db.updateTable('terminal_tickets').set({ token_hash: p.to }).where('token_hash', '=', p.from),
);

/** Deletes a batch of expired tickets. */
export const deleteTickets = defineQuery('terminal tickets/delete', (db, p: { now_ms: number; limit: number }) =>
  db
    .deleteFrom('terminal_tickets')
    .where('ticket_hash', 'in', (e) =>
      e
        .selectFrom('terminal_tickets')
        .select('ticket_hash')
        .where('expires_at_ms', '<=', p.now_ms)
        .orderBy('ticket_hash')
        .limit(p.limit),
    ),
);
