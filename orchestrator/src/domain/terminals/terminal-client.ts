import type { ErrorCode } from '@muster/protocol';
import type { TerminalMode } from './terminal-tickets.ts';

/** Messages to clients on a terminal's WebSocket, as JSON text frames interleaved with the output. */
export type TerminalNotice =
  /** The size of the terminal. Sent first, and after every change. */
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  /** The shell exited. `code` is null if it is unknown, or if a signal terminated the shell. */
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: string | null }
  /** The reason why this connection closes or the session ends, with an API error code. */
  | { readonly type: 'error'; readonly code: ErrorCode; readonly message: string };

/** An operator's connection to a terminal, as seen by the domain. The HTTP layer owns the socket. */
export interface TerminalClient {
  /**
   * Sends output.
   * @param sent called once, when the network has accepted the output or the connection is closed
   */
  show(bytes: Uint8Array, sent: () => void): void;
  notify(notice: TerminalNotice): void;
  /** Stops reading input until `resume`. Typed bytes wait in network buffers. */
  pause(): void;
  resume(): void;
  /** Closes the connection after all pending data is sent. */
  close(): void;
  /** Closes the connection within half a second, even if the client does not receive pending data. */
  cut(): void;
}

/** Client events, reported by the HTTP layer. */
export interface TerminalConnectionEvents {
  readonly mode: TerminalMode;
  /** Whether another replica holds the session, which continues when this process stops. */
  readonly isRelayed?: boolean;
  typed(bytes: Uint8Array): void;
  resized(cols: number, rows: number): void;
  /** Handles a closed connection. Called once. */
  left(): void;
}

/** Accepts connections from the HTTP layer. */
export interface TerminalConnections {
  /**
   * Redeems a ticket, and connects the client to its session. The client may receive messages and output before this
   * resolves.
   * @param sessionId the session in the URL
   * @returns null if the ticket is invalid, or was issued for another session
   */
  connect(ticket: string, sessionId: string, client: TerminalClient): Promise<TerminalConnectionEvents | null>;
}
