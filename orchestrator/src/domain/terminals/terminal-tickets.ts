import { hash } from 'node:crypto';
import {
  deleteTickets,
  insertTicket,
  signInOfTicket,
  takeTicket,
  ticketBeyond,
  ticketExists,
} from '../../store/queries/terminals.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';

export type TerminalMode = 'control' | 'view';

export interface TerminalTicket {
  readonly session_id: string;
  readonly operator_id: string;
  readonly username: string;
  readonly mode: TerminalMode;
  /** Token hash of the sign-in session that requested the ticket. */
  readonly token_hash?: string | null | undefined;
}

/** A redeemed ticket. */
export interface TakenTicket extends TerminalTicket {
  /** The `session_id` of the sign-in session, which stays the same when the session is renewed; null if unknown. */
  readonly sign_in_id: string | null;
}

const lifeMs = 30_000;
/** Maximum number of live tickets per session. */
const maxOfSession = 32;
const deletedAtOnce = 500;

const digest = (ticket: string): string => hash('sha256', ticket);

/**
 * Issues tickets for connections to terminals. A browser cannot send a session token when it opens a WebSocket, and a
 * token in the URL would appear in logs. A ticket is valid once and for a short time, and only its hash is stored.
 */
export class TerminalTickets {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Creates a ticket, which is valid once the statements are committed. The statements fail with `terminal_limit` if
   * the session has too many unused tickets.
   */
  draw({ token_hash = null, ...ticket }: TerminalTicket): {
    readonly text: string;
    readonly statements: readonly Statement[];
  } {
    const text = this.#context.randomBytes(32).toString('base64url');
    const now_ms = this.#context.steadyNow();
    const { session_id } = ticket;
    const detail =
      'this session has the maximum number of unused tickets; connect with one of them, or wait until they expire';
    const statements = [
      statement(
        ticketBeyond,
        { session_id, now_ms, skip: maxOfSession - 1 },
        { expect: 'no_row', else: 'terminal_limit', detail },
      ),
      statement(insertTicket, { ...ticket, token_hash, ticket_hash: digest(text), expires_at_ms: now_ms + lifeMs }),
    ];
    return { text, statements };
  }

  /** Reports whether there is a ticket, which may have expired. */
  async exists(text: string): Promise<boolean> {
    return (await this.#context.db.get(ticketExists, { ticket_hash: digest(text) })) !== undefined;
  }

  /** Redeems a ticket. Returns null if the ticket is unknown, used, or expired. */
  async take(text: string): Promise<TakenTicket | null> {
    const { db } = this.#context;
    const ticket_hash = digest(text);
    // Unauthenticated clients can send arbitrary tickets, so most invalid ones must not cost a transaction.
    if ((await db.get(ticketExists, { ticket_hash })) === undefined) return null;
    // Read in the same transaction, because a renewal no longer moves a ticket that is deleted.
    const signIn = statement(signInOfTicket, { ticket_hash });
    const take = statement(takeTicket, { ticket_hash });
    const result = await db.write({ name: 'terminals/take ticket', statements: [signIn, take] });
    const [row] = result.of(take).rows;
    if (!row || row.expires_at_ms <= this.#context.steadyNow()) return null;
    return { ...row, sign_in_id: result.of(signIn).rows[0]?.sign_in_id ?? null };
  }
}

/** Deletes expired tickets. Each deletion runs in its own transaction. */
export async function deleteExpiredTickets({ db, steadyNow }: Pick<Context, 'db' | 'steadyNow'>): Promise<void> {
  const expired = { now_ms: steadyNow(), limit: deletedAtOnce };
  while ((await db.alone(deleteTickets, expired)).changes === deletedAtOnce);
}
