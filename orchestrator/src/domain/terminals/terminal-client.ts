import type { ErrorCode } from '@muster/protocol';
import type { TerminalMode } from './terminal-tickets.ts';

/** What is said on a terminal's WebSocket besides its bytes, as text frames of JSON, to clients. */
export type TerminalNotice =
  /** How large the terminal is: first of all, and whenever that changes. */
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  /** The shell has ended.  `code` is null when a signal ended it, or nobody knows. */
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: string | null }
  /** Why this connection, or the session, ends: a code of the table of errors. */
  | { readonly type: 'error'; readonly code: ErrorCode; readonly message: string };

/** One connection of an operator to a terminal, as the domain sees it; the HTTP side holds the socket. */
export interface TerminalClient {
  /** Hands on what the terminal showed. @param sent called once, when the network has taken it or the connection is gone */
  show(bytes: Uint8Array, sent: () => void): void;
  tell(notice: TerminalNotice): void;
  /** Reads nothing from it until `resume`: what was typed waits in the network. */
  pause(): void;
  resume(): void;
  /** Closes it, after what was handed to it has been sent. */
  close(): void;
  /** Closes it as well, and ends it within half a second whether or not it takes what it was told: it may see no more. */
  cut(): void;
}

/** What a client does, told by the HTTP side. */
export interface TerminalConnectionEvents {
  readonly mode: TerminalMode;
  typed(bytes: Uint8Array): void;
  resized(cols: number, rows: number): void;
  /** The connection is gone, once. */
  left(): void;
}

/** Where connections come in: what the HTTP side asks of the domain. */
export interface TerminalConnections {
  /**
   * Uses up a ticket, and joins the connection to its session. The client may be told and shown things before this has
   * returned.
   * @param sessionId the session that the address names
   * @returns null when the ticket is not good, or is not for that session
   */
  connect(ticket: string, sessionId: string, client: TerminalClient): TerminalConnectionEvents | null;
}
