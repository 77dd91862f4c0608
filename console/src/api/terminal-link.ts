import type { TerminalAddress, TerminalMode } from './terminals.ts';

/**
 * A terminal's connection that mends itself: while the session lives it attaches again after whatever cut it off, and is
 * shown the screen as it is then. Over values and parts that are handed in, so that its ways can be tested.
 */

/** The part of a WebSocket that this uses. */
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
  /** Whether an attempt to attach failed for good. */
  isFinal(error: unknown): boolean;
  /** Calls back after so many milliseconds; what it gives back calls that off. */
  after(ms: number, act: () => void): () => void;
}

export interface LinkEvents {
  /** A connection begins: what is shown from here on stands on an empty screen. */
  fresh(): void;
  shown(bytes: Uint8Array): void;
  sized(cols: number, rows: number): void;
  changed(state: LinkState): void;
}

export type LinkState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'open'; readonly mode: TerminalMode }
  /** Cut off, and trying again. */
  | { readonly kind: 'lost' }
  /** Another connection is in control. */
  | { readonly kind: 'taken_over'; readonly message: string }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: string | null }
  | { readonly kind: 'ended'; readonly code: string; readonly message: string };

export type LinkNotice =
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: string | null }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

/** Codes after which the session may well live: attach again. */
const passing = new Set(['terminal_too_slow', 'terminal_interrupted', 'unauthenticated', 'internal']);

/** What a notice of the orchestrator means for the connection; null: nothing, or attach again. */
export function afterNotice(notice: LinkNotice): LinkState | null {
  if (notice.type === 'resize') return null;
  if (notice.type === 'exit') return { kind: 'exited', code: notice.code, signal: notice.signal };
  if (notice.code === 'terminal_taken_over') return { kind: 'taken_over', message: notice.message };
  return passing.has(notice.code) ? null : { kind: 'ended', code: notice.code, message: notice.message };
}

/** Milliseconds before the next attempt. */
export const waitBeforeAttach = (attempt: number): number => Math.min(300 * 2 ** attempt, 5_000);

/** What waits to be shown: beyond the first of these the connection is left, and taken up below the second. */
const behind = { most: 8 * 1024 * 1024, least: 256 * 1024 } as const;
const largestFrame = 32 * 1024;
const stable = 10_000;
const openState = 1;

export class TerminalLink {
  readonly #parts: LinkParts;
  readonly #events: LinkEvents;
  #mode: TerminalMode;
  #socket: LinkSocket | null = null;
  #state: LinkState = { kind: 'connecting' };
  #attempt = 0;
  /** Bytes that were given to be shown, and are not yet. */
  #behind = 0;
  /** Of these, those of a former connection: the questions in them were answered there, or are nobody's any more. */
  #former = 0;
  #skipping = false;
  #over = false;
  #callOff = () => {};
  #settle = () => {};
  /** Turns with every connection, so that what comes late of a former one is nobody's. */
  #turn = 0;

  constructor(mode: TerminalMode, parts: LinkParts, events: LinkEvents) {
    this.#mode = mode;
    this.#parts = parts;
    this.#events = events;
  }

  get state(): LinkState {
    return this.#state;
  }

  /** @param wsUrl of a session that was opened just now; null: attach */
  start(wsUrl: string | null): void {
    if (wsUrl === null) void this.#attach();
    else this.#open(wsUrl);
  }

  /** Attaches anew, in this mode. */
  take(mode: TerminalMode): void {
    this.#mode = mode;
    this.#attempt = 0;
    this.#drop();
    this.#become({ kind: 'connecting' });
    void this.#attach();
  }

  /** The network is there again, or the page is looked at: do not wait any longer. */
  hurry(): void {
    if (this.#state.kind !== 'lost') return;
    this.#callOff();
    this.#attempt = 0;
    void this.#attach();
  }

  /** Bytes that were given to {@link LinkEvents.shown} are on the screen. */
  drained(bytes: number): void {
    this.#behind -= bytes;
    this.#former = Math.max(0, this.#former - bytes);
    if (!this.#skipping || this.#behind > behind.least) return;
    this.#skipping = false;
    void this.#attach();
  }

  type(text: string): void {
    // What the screen answers by itself, and some keys, begin so.
    if (this.#former > 0 && text.startsWith('\x1b')) return;
    this.typeBytes(new TextEncoder().encode(text));
  }

  typeBytes(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#mode !== 'control' || this.#socket?.readyState !== openState) return;
    for (let from = 0; from < bytes.length; from += largestFrame)
      this.#socket.send(bytes.subarray(from, from + largestFrame));
  }

  resize(cols: number, rows: number): void {
    if (this.#mode !== 'control' || this.#socket?.readyState !== openState) return;
    this.#socket.send(JSON.stringify({ type: 'resize', cols, rows }));
  }

  close(): void {
    this.#over = true;
    this.#drop();
  }

  #become(state: LinkState): void {
    this.#state = state;
    if (!this.#over) this.#events.changed(state);
  }

  /** Lets go of the connection, without waiting for what comes of it. */
  #drop(): void {
    this.#turn++;
    this.#callOff();
    this.#settle();
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = null;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close();
  }

  async #attach(): Promise<void> {
    const turn = ++this.#turn;
    try {
      const { ws_url } = await this.#parts.attach(this.#mode);
      if (turn === this.#turn && !this.#over) this.#open(ws_url);
    } catch (error) {
      if (turn !== this.#turn || this.#over) return;
      if (this.#parts.isFinal(error)) {
        const code = (error as { problem?: { code: string } }).problem?.code ?? 'failed';
        this.#become({ kind: 'ended', code, message: (error as Error).message });
      } else this.#again();
    }
  }

  #open(wsUrl: string): void {
    const turn = ++this.#turn;
    const socket = this.#parts.open(wsUrl);
    this.#socket = socket;
    let next: LinkState | null = null;
    socket.onopen = () => {
      this.#former = this.#behind;
      this.#events.fresh();
      // Only one that holds for a while forgets how often it was tried.
      this.#settle = this.#parts.after(stable, () => {
        this.#attempt = 0;
      });
      this.#become({ kind: 'open', mode: this.#mode });
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== 'string') return this.#show(new Uint8Array(data as ArrayBuffer));
      const notice = readNotice(data);
      if (notice === null) return;
      if (notice.type === 'resize') this.#events.sized(notice.cols, notice.rows);
      next = afterNotice(notice) ?? next;
    };
    socket.onclose = () => {
      if (turn !== this.#turn) return;
      this.#socket = null;
      this.#settle();
      if (next !== null) this.#become(next);
      else this.#again();
    };
  }

  #show(bytes: Uint8Array): void {
    this.#behind += bytes.length;
    this.#events.shown(bytes);
    if (this.#behind <= behind.most) return;
    // More came than can be drawn: what is left out here is in the recording, and the screen comes as it then is.
    this.#skipping = true;
    this.#drop();
  }

  #again(): void {
    this.#become({ kind: 'lost' });
    this.#callOff = this.#parts.after(waitBeforeAttach(this.#attempt++), () => void this.#attach());
  }
}

/** @returns null for what is none */
export function readNotice(text: string): LinkNotice | null {
  try {
    const value = JSON.parse(text) as LinkNotice;
    return ['resize', 'exit', 'error'].includes(value.type) ? value : null;
  } catch {
    return null;
  }
}
