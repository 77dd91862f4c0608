import { createHash } from 'node:crypto';

export type TerminalMode = 'control' | 'view';

export interface TerminalTicket {
  readonly session_id: string;
  readonly operator_id: string;
  readonly username: string;
  readonly mode: TerminalMode;
  /** Token hash of the sign-in session that requested the ticket. */
  readonly token_hash: string | undefined;
}

const lifeMs = 30_000;
/** Maximum live tickets per session. */
const maxOfSession = 32;

const digest = (ticket: string): string => createHash('sha256').update(ticket).digest('base64');

/**
 * Issues tickets for connections to terminals. A browser cannot send a session token when it opens a WebSocket, and a
 * token in the URL would appear in logs. A ticket is valid once and for a short time, and only its hash is stored.
 */
export class TerminalTickets {
  readonly #now: () => number;
  readonly #random: (length: number) => Buffer;
  readonly #live = new Map<string, TerminalTicket & { until: number }>();

  /** @param now returns the milliseconds of a monotonic clock */
  constructor(now: () => number, random: (length: number) => Buffer) {
    this.#now = now;
    this.#random = random;
  }

  /** Issues a ticket. Returns null if the session has too many unused tickets. */
  issue(ticket: TerminalTicket): string | null {
    this.#expire();
    let others = 0;
    for (const { session_id } of this.#live.values()) if (session_id === ticket.session_id) others++;
    if (others >= maxOfSession) return null;
    const text = this.#random(32).toString('base64url');
    this.#live.set(digest(text), { ...ticket, until: this.#now() + lifeMs });
    return text;
  }

  /** Redeems a ticket. Returns null if the ticket is unknown, used, or expired. */
  redeem(text: string): TerminalTicket | null {
    this.#expire();
    const key = digest(text);
    const found = this.#live.get(key);
    if (!found) return null;
    this.#live.delete(key);
    const { until: _, ...ticket } = found;
    return ticket;
  }

  /** Revokes tickets, for example when a terminal session ends, or when an operator is removed or signs out. */
  revoke(which: (ticket: TerminalTicket) => boolean): void {
    for (const [key, ticket] of this.#live) if (which(ticket)) this.#live.delete(key);
  }

  /** Drops expired tickets, which are the oldest ones. */
  #expire(): void {
    for (const [key, { until }] of this.#live) {
      if (until > this.#now()) return;
      this.#live.delete(key);
    }
  }
}
