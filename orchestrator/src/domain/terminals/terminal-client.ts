import type { ErrorCode } from '@muster/protocol';
import type { TerminalMode } from './terminal-tickets.ts';

/** Messages to clients on a terminal's WebSocket in addition to its output, as JSON text frames. */
export type TerminalNotice =
  /** The size of the terminal. The first message, and sent again after every change. */
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  /** The shell ended. `code` is null when unknown, or when a signal ended the shell. */
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: string | null }
  /** The reason why this connection, or the session, ends, with an API error code. */
  | { readonly type: 'error'; readonly code: ErrorCode; readonly message: string };

/** The domain's view of an operator's connection to a terminal; the HTTP side has the socket. */
export interface TerminalClient {
  /** Sends output. @param sent called once, when the network has accepted the output or the connection is closed */
  show(bytes: Uint8Array, sent: () => void): void;
  tell(notice: TerminalNotice): void;
  /** Stops reading input until `resume`. Typed bytes stay in the network's buffers. */
  pause(): void;
  resume(): void;
  /** Closes the connection after all pending data was sent. */
  close(): void;
  /** Closes the connection within half a second, even if the client does not receive pending data. */
  cut(): void;
}

/** Events of a client, reported by the HTTP side. */
export interface TerminalConnectionEvents {
  readonly mode: TerminalMode;
  typed(bytes: Uint8Array): void;
  resized(cols: number, rows: number): void;
  /** The connection is closed. Called once. */
  left(): void;
}

/** Accepts connections from the HTTP side. */
export interface TerminalConnections {
  /**
   * Redeems a ticket and connects the client to its session. The client may receive messages and output before this
   * returns.
   * @param sessionId the session in the URL
   * @returns null when the ticket is invalid, or for another session
   */
  connect(ticket: string, sessionId: string, client: TerminalClient): TerminalConnectionEvents | null;
}
