import type { ErrorCode } from '@muster/protocol';
import type { TerminalMode } from './terminal-tickets.ts';

/** Messages to clients on a terminal's WebSocket besides its output, as JSON text frames. */
export type TerminalNotice =
  /** The size of the terminal. Sent first, and after every change. */
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  /** The shell ended. `code` is null when a signal ended it, or when it is unknown. */
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: string | null }
  /** The reason why this connection, or the session, ends, with an API error code. */
  | { readonly type: 'error'; readonly code: ErrorCode; readonly message: string };

/** The domain's view of an operator's connection to a terminal; the HTTP side has the socket. */
export interface TerminalClient {
  /** Sends output. @param sent called once, when the network has accepted it or the connection is gone */
  show(bytes: Uint8Array, sent: () => void): void;
  tell(notice: TerminalNotice): void;
  /** Stops reading input until `resume`; typed bytes wait in the network. */
  pause(): void;
  resume(): void;
  /** Closes the connection after everything was sent. */
  close(): void;
  /** Closes the connection within half a second, even if the client does not receive what is pending. */
  cut(): void;
}

/** Events of a client, reported by the HTTP side. */
export interface TerminalConnectionEvents {
  readonly mode: TerminalMode;
  typed(bytes: Uint8Array): void;
  resized(cols: number, rows: number): void;
  /** The connection is gone. Called once. */
  left(): void;
}

/** Accepts connections from the HTTP side. */
export interface TerminalConnections {
  /**
   * Redeems a ticket and connects the client to its session. The client may be sent messages and output before this
   * returns.
   * @param sessionId the session in the URL
   * @returns null when the ticket is invalid, or for another session
   */
  connect(ticket: string, sessionId: string, client: TerminalClient): TerminalConnectionEvents | null;
}
