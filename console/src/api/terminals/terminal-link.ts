import { readTerminalNotice, type TerminalNotice } from '../../../../client/src/terminal-notice.ts';
import { reattachDelayMs, stableConnectionMs } from '../../../../client/src/terminal-reattach.ts';
import type { TerminalAddress, TerminalMode } from './terminals.ts';

/**
 * A terminal's WebSocket connection. Reattaches after every interruption while the terminal session exists, and then
 * receives the current screen.
 */

/** The part of the WebSocket interface that TerminalLink uses. */
export interface LinkSocket {
  readonly readyState: number;
  readonly bufferedAmount: number;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
}

export interface LinkParts {
  attach(mode: TerminalMode): Promise<TerminalAddress>;
  open(wsUrl: string): LinkSocket;
  /** Reports whether a failure to attach is permanent. */
  isFinal(error: unknown): boolean;
  /** Calls `act` after `ms` milliseconds. The returned function cancels the call. */
  after(ms: number, act: () => void): () => void;
}

export interface LinkEvents {
  /** Called for each new connection. The receiver clears the screen. */
  fresh(): void;
  shown(bytes: Uint8Array): void;
  sized(cols: number, rows: number): void;
  changed(state: LinkState): void;
}

export type LinkState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'open'; readonly mode: TerminalMode }
  /** Disconnected and reconnecting. */
  | { readonly kind: 'lost' }
  /** Another connection took control. */
  | { readonly kind: 'taken_over'; readonly message: string }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: string | null }
  | { readonly kind: 'ended'; readonly code: string; readonly message: string };

/** After a close with one of these codes, the terminal session may still exist, so the link reattaches. */
const transientCodes = new Set(['terminal_too_slow', 'terminal_interrupted', 'unauthenticated', 'internal']);

/** Returns the link state after a notice. Returns null if the notice changes nothing, or if the link reattaches. */
export function afterNotice(notice: TerminalNotice): LinkState | null {
  if (notice.type === 'resize') return null;
  if (notice.type === 'exit') return { kind: 'exited', code: notice.code, signal: notice.signal };
  if (notice.code === 'terminal_taken_over') return { kind: 'taken_over', message: notice.message };
  return transientCodes.has(notice.code) ? null : { kind: 'ended', code: notice.code, message: notice.message };
}

/** Limits on bytes that are not rendered yet: above `max` the link disconnects, below `min` it reattaches. */
const backlog = { max: 8 * 1024 * 1024, min: 256 * 1024 } as const;
/** The CLI retries more often, but gives up after a minute. A page may stay open for days. */
const maxReattachDelayMs = 5_000;
/** Maximum size of an input frame in bytes. */
const maxFrame = 32 * 1024;
const openState = 1;

export class TerminalLink {
  readonly #parts: LinkParts;
  readonly #events: LinkEvents;
  #mode: TerminalMode;
  #socket: LinkSocket | null = null;
  #state: LinkState = { kind: 'connecting' };
  #attempt = 0;
  /** Number of bytes passed to `shown` that are not rendered yet. */
  #backlog = 0;
  /**
   * The part of the backlog that was received on a previous connection. The link must not reply again to terminal
   * queries in this part.
   */
  #previous = 0;
  #skipping = false;
  #closed = false;
  #cancelRetry = () => {};
  #cancelReset = () => {};
  /** Incremented for every connection, so that late results from earlier connections are ignored. */
  #generation = 0;

  constructor(mode: TerminalMode, parts: LinkParts, events: LinkEvents) {
    this.#mode = mode;
    this.#parts = parts;
    this.#events = events;
  }

  get state(): LinkState {
    return this.#state;
  }

  /** @param wsUrl the WebSocket URL of a terminal session that was just opened; null attaches to an existing session */
  start(wsUrl: string | null): void {
    if (wsUrl === null) void this.#attach();
    else this.#open(wsUrl);
  }

  /** Reattaches in the given mode. */
  take(mode: TerminalMode): void {
    this.#mode = mode;
    this.#attempt = 0;
    this.#drop();
    this.#become({ kind: 'connecting' });
    void this.#attach();
  }

  /** Retries without delay. Call this function when the network is available again or the page becomes visible. */
  retryNow(): void {
    if (this.#state.kind !== 'lost') return;
    this.#cancelRetry();
    this.#attempt = 0;
    void this.#attach();
  }

  /** Call this function when bytes that were passed to {@link LinkEvents.shown} have been rendered. */
  drained(bytes: number): void {
    this.#backlog -= bytes;
    this.#previous = Math.max(0, this.#previous - bytes);
    if (!this.#skipping || this.#backlog > backlog.min) return;
    this.#skipping = false;
    void this.#attach();
  }

  type(text: string): void {
    // Replies to terminal queries start with an escape character. Some keys do too, and are dropped as well.
    if (this.#previous > 0 && text.startsWith('\x1b')) return;
    this.typeBytes(new TextEncoder().encode(text));
  }

  typeBytes(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#mode !== 'control' || this.#socket?.readyState !== openState) return;
    for (let from = 0; from < bytes.length; from += maxFrame) this.#socket.send(bytes.subarray(from, from + maxFrame));
  }

  resize(cols: number, rows: number): void {
    if (this.#mode !== 'control' || this.#socket?.readyState !== openState) return;
    this.#socket.send(JSON.stringify({ type: 'resize', cols, rows }));
  }

  close(): void {
    this.#closed = true;
    this.#drop();
  }

  #become(state: LinkState): void {
    this.#state = state;
    if (!this.#closed) this.#events.changed(state);
  }

  /** Closes the connection and ignores its later events. */
  #drop(): void {
    this.#generation++;
    this.#cancelRetry();
    this.#cancelReset();
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = null;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close();
  }

  async #attach(): Promise<void> {
    const generation = ++this.#generation;
    try {
      const { ws_url } = await this.#parts.attach(this.#mode);
      if (generation === this.#generation && !this.#closed) this.#open(ws_url);
    } catch (error) {
      if (generation !== this.#generation || this.#closed) return;
      if (this.#parts.isFinal(error)) {
        const code = (error as { problem?: { code: string } }).problem?.code ?? 'failed';
        this.#become({ kind: 'ended', code, message: (error as Error).message });
      } else this.#retryLater();
    }
  }

  #open(wsUrl: string): void {
    const generation = ++this.#generation;
    const socket = this.#parts.open(wsUrl);
    this.#socket = socket;
    let next: LinkState | null = null;
    socket.onopen = () => {
      this.#previous = this.#backlog;
      this.#events.fresh();
      this.#cancelReset = this.#parts.after(stableConnectionMs, () => {
        this.#attempt = 0;
      });
      this.#become({ kind: 'open', mode: this.#mode });
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== 'string') return this.#show(new Uint8Array(data as ArrayBuffer));
      const notice = readTerminalNotice(data);
      if (notice === null) return;
      if (notice.type === 'resize') this.#events.sized(notice.cols, notice.rows);
      next = afterNotice(notice) ?? next;
    };
    socket.onclose = () => {
      if (generation !== this.#generation) return;
      this.#socket = null;
      this.#cancelReset();
      if (next !== null) this.#become(next);
      else this.#retryLater();
    };
  }

  #show(bytes: Uint8Array): void {
    this.#backlog += bytes.length;
    this.#events.shown(bytes);
    if (this.#backlog <= backlog.max) return;
    // Output arrives faster than it is rendered. Reattaching sends the current screen; the skipped part is in the
    // recording.
    this.#skipping = true;
    this.#drop();
  }

  #retryLater(): void {
    this.#become({ kind: 'lost' });
    this.#cancelRetry = this.#parts.after(
      reattachDelayMs(this.#attempt++, maxReattachDelayMs),
      () => void this.#attach(),
    );
  }
}
