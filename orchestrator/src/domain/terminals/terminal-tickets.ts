import { createHash } from 'node:crypto';

/** What a connection may do. */
export type TerminalMode = 'control' | 'view';

export interface TerminalTicket {
  readonly session_id: string;
  readonly operator_id: string;
  readonly username: string;
  readonly mode: TerminalMode;
  /** Of the sign-in session that asked for it. */
  readonly token_hash: string | undefined;
}

const lifeMs = 30_000;
/** Live tickets of one session; more are refused. */
const mostOfSession = 32;

const digest = (ticket: string): string => createHash('sha256').update(ticket).digest('base64');

/**
 * Tickets for connections to terminals: a browser cannot send a session token with a WebSocket, and an address that
 * held one would be in every log. A ticket is good once and soon over; only its hash is kept.
 */
export class TerminalTickets {
  readonly #now: () => number;
  readonly #random: (length: number) => Buffer;
  readonly #live = new Map<string, TerminalTicket & { until: number }>();

  /** @param now in milliseconds, of a clock that is never set */
  constructor(now: () => number, random: (length: number) => Buffer) {
    this.#now = now;
    this.#random = random;
  }

  /** @returns null when the session has too many that nobody has used */
  issue(ticket: TerminalTicket): string | null {
    this.#expire();
    let others = 0;
    for (const { session_id } of this.#live.values()) if (session_id === ticket.session_id) others++;
    if (others >= mostOfSession) return null;
    const text = this.#random(32).toString('base64url');
    this.#live.set(digest(text), { ...ticket, until: this.#now() + lifeMs });
    return text;
  }

  /** What the ticket is for; null when it is unknown, used or over. It is used up by this. */
  redeem(text: string): TerminalTicket | null {
    this.#expire();
    const key = digest(text);
    const found = this.#live.get(key);
    if (!found) return null;
    this.#live.delete(key);
    const { until: _, ...ticket } = found;
    return ticket;
  }

  /** Takes back those of a terminal that has ended, or of an operator who was removed or has signed out. */
  revoke(which: (ticket: TerminalTicket) => boolean): void {
    for (const [key, ticket] of this.#live) if (which(ticket)) this.#live.delete(key);
  }

  /** In the order in which they were issued, which is that in which they end. */
  #expire(): void {
    for (const [key, { until }] of this.#live) {
      if (until > this.#now()) return;
      this.#live.delete(key);
    }
  }
}
