import { type Frame, type FrameKind, maxContent } from './relay-frames.ts';

/**
 * An end of a relayed connection. Frames are numbered in each direction, so that a missing frame is detected. The
 * other end may have at most {@link window} bytes that it has not consumed; further bytes wait at the sender.
 */

/** Maximum number of sent bytes that the receiver has not consumed. */
export const window = 256 * 1024;
/** Number of consumed bytes at which the receiver returns credit. */
const creditBytes = 64 * 1024;
/** Bytes counted for each frame in addition to its content, to limit the number of small frames. */
const frameCost = 32;
/** Maximum number of waiting frames, as for the WebSocket of a client. */
const maxWaiting = 8_192;
/** Milliseconds after the last sent frame at which an end sends an `alive` frame. */
const aliveMs = 2_000;
/** Milliseconds after the last received frame at which the connection counts as lost. */
const silentMs = 10_000;

/**
 * - `gap`: a frame is missing.
 * - `excess`: the other end sent more than its credit, or an invalid frame.
 * - `silent`: the other end sent nothing for ten seconds.
 * - `unsent`: a frame could not be sent, or the connection with NATS was lost.
 * - `full`: too many frames wait.
 * - `failed`: this end failed to handle a frame, which is a bug.
 */
export type RelayLoss = 'gap' | 'excess' | 'silent' | 'unsent' | 'full' | 'failed';

export interface RelayStreamParts {
  readonly connection: string;
  /** @returns whether the frame was accepted for sending */
  send(frame: Frame): boolean;
  readonly monotonic: () => number;
  /** Handles a frame, in order. Its content must be released with {@link RelayStream.consumed}. */
  received(kind: Exclude<FrameKind, 'credit' | 'alive'>, content: Buffer): void;
  /** Called when no more frames are waiting. */
  drained(): void;
  /** Called once, if the connection is lost. */
  lost(reason: RelayLoss): void;
}

interface Waiting {
  readonly kind: FrameKind;
  readonly isSize: boolean;
  /** At most {@link maxContent} bytes. */
  length: number;
  readonly parts: Buffer[];
  /** Called when the frame was sent or dropped. */
  readonly sent: (() => void)[];
}

export const costOf = ({ length }: { readonly length: number }): number => length + frameCost;

export class RelayStream {
  readonly #parts: RelayStreamParts;
  #waiting: Waiting[] = [];
  #credit = window;
  #sent = 0;
  #received = 0;
  /** Received bytes that have not been returned as credit yet. */
  #unreturned = 0;
  /** Consumed bytes that have not been returned as credit yet. */
  #consumed = 0;
  #sentAt: number;
  #heardAt: number;
  #over = false;

  constructor(parts: RelayStreamParts) {
    this.#parts = parts;
    this.#sentAt = parts.monotonic();
    this.#heardAt = this.#sentAt;
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Sends content in order, as soon as there is credit. @param sent called once, even if the content is never sent */
  push(kind: FrameKind, content: Uint8Array = Buffer.alloc(0), sent = () => {}): void {
    if (this.#over) {
      queueMicrotask(sent);
      return;
    }
    const all = Buffer.from(content);
    let from = 0;
    for (; all.length - from > maxContent; from += maxContent) this.#add(kind, all.subarray(from, from + maxContent));
    this.#add(kind, all.subarray(from), sent);
    this.#pump();
  }

  /**
   * Sends a text frame with a terminal size. The next size replaces a waiting size, unless other frames were pushed in
   * between.
   */
  pushSize(content: Buffer): void {
    const last = this.#waiting.at(-1);
    if (this.#over) return;
    if (last?.isSize) this.#waiting.pop();
    this.#add('text', content, undefined, true);
    this.#pump();
  }

  /**
   * Sends the last frame without waiting for credit. Drops queued data frames and all queued size frames except the
   * last. Sends queued text frames first.
   */
  pushLast(kind: FrameKind): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const lastSize = waiting.findLast(({ isSize }) => isSize);
    for (const one of waiting) {
      if (one.kind === 'text' && (!one.isSize || one === lastSize)) this.#send(one.kind, Buffer.concat(one.parts));
      for (const sent of one.sent) queueMicrotask(sent);
    }
    this.#send(kind, Buffer.alloc(0));
  }

  /** Releases received content. @param cost {@link costOf} the content */
  consumed(cost: number): void {
    this.#consumed += cost;
    if (this.#over || this.#consumed < creditBytes) return;
    const content = Buffer.alloc(4);
    content.writeUInt32BE(this.#consumed);
    this.#unreturned -= this.#consumed;
    this.#consumed = 0;
    this.#send('credit', content);
  }

  accept({ number, kind, content }: Frame): void {
    if (this.#over || number <= this.#received) return;
    if (number !== this.#received + 1) this.#lose('gap');
    else {
      this.#received = number;
      this.#heardAt = this.#parts.monotonic();
      if (kind === 'credit') this.#addCredit(content);
      else if (kind !== 'alive') this.#receive(kind, content);
    }
  }

  /** Must be called about once a second. */
  sweep(): void {
    const now = this.#parts.monotonic();
    if (now - this.#heardAt >= silentMs) this.#lose('silent');
    else if (now - this.#sentAt >= aliveMs) this.#send('alive', Buffer.alloc(0));
  }

  /**
   * Ends the connection, for example because the connection with NATS was lost or the other end sent invalid content.
   */
  fail(reason: RelayLoss): void {
    this.#lose(reason);
  }

  /** Ends the connection on this side, without notifying the other end. */
  end(): void {
    this.#over = true;
    for (const one of this.#waiting.splice(0)) for (const sent of one.sent) queueMicrotask(sent);
  }

  /** Adds content to the waiting frames. Joins data, because a shell or a client may send single bytes. */
  #add(kind: FrameKind, part: Buffer, sent = () => {}, isSize = false): void {
    const last = this.#waiting.at(-1);
    if (kind === 'data' && last?.kind === 'data' && last.length + part.length <= maxContent) {
      last.parts.push(part);
      last.length += part.length;
      last.sent.push(sent);
    } else this.#waiting.push({ kind, isSize, length: part.length, parts: [part], sent: [sent] });
  }

  #addCredit(content: Buffer): void {
    if (content.length !== 4) this.#lose('excess');
    // The last frames are sent without credit, so the other end may return more credit than was used.
    else this.#credit = Math.min(window, this.#credit + content.readUInt32BE());
    this.#pump();
  }

  #receive(kind: Exclude<FrameKind, 'credit' | 'alive'>, content: Buffer): void {
    this.#unreturned += costOf(content);
    // The last frames need no credit.
    if (this.#unreturned > window + maxContent) this.#lose('excess');
    else this.#parts.received(kind, content);
  }

  #pump(): void {
    const waited = this.isWaiting;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const cost = costOf(next);
      if (this.#over) return;
      if (cost > this.#credit) {
        if (this.#waiting.length > maxWaiting) this.#lose('full');
        return;
      }
      this.#waiting.shift();
      this.#credit -= cost;
      this.#send(next.kind, Buffer.concat(next.parts));
      for (const sent of next.sent) queueMicrotask(sent);
    }
    if (waited) this.#parts.drained();
  }

  #send(kind: FrameKind, content: Buffer): void {
    if (this.#over) return;
    this.#sentAt = this.#parts.monotonic();
    if (!this.#parts.send(this.#next(kind, content))) this.#lose('unsent');
  }

  #next(kind: FrameKind, content: Buffer): Frame {
    return { connection: this.#parts.connection, number: ++this.#sent, kind, content };
  }

  #lose(reason: RelayLoss): void {
    if (this.#over) return;
    this.end();
    // Otherwise, the other end would keep its connection until it notices the silence.
    if (reason !== 'unsent') this.#parts.send(this.#next('cut', Buffer.alloc(0)));
    this.#parts.lost(reason);
  }
}
