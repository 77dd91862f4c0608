/**
 * Flow control for terminals: a sender may have a limited number of unacknowledged bytes, and the receiver returns
 * credit for the bytes it has processed.
 */

/**
 * Fraction of the flow-control window after which credit is returned. A quarter, so that not every echoed keystroke
 * causes a message.
 */
const stepsOfWindow = 4;

/** The receiving side. Enforces an agent's output window, and computes the credit to return. */
export class OutputWindow {
  private readonly size: number;
  /** Received bytes for which no credit has been returned yet. */
  private outstanding = 0;
  /** Processed bytes for which no credit has been returned yet. */
  private done = 0;

  constructor(size: number) {
    this.size = size;
  }

  /** @returns false if the agent exceeded the window */
  receive(bytes: number): boolean {
    this.outstanding += bytes;
    return this.outstanding <= this.size;
  }

  /**
   * Marks bytes as processed.
   * @returns the credit to send now; 0 while it is too small for a message
   * @throws RangeError if more bytes are marked than were received
   */
  take(bytes: number): number {
    if (!(bytes >= 0 && bytes <= this.outstanding - this.done))
      throw new RangeError(
        `cannot mark ${bytes} terminal bytes as processed: only ${this.outstanding - this.done} are outstanding`,
      );
    this.done += bytes;
    if (this.done * stepsOfWindow < this.size) return 0;
    const credit = this.done;
    this.outstanding -= credit;
    this.done = 0;
    return credit;
  }
}

/**
 * Joins small chunks of output, because even a one-byte chunk uses hundreds of bytes of memory until the transcript and
 * the viewers have processed it.
 */
export class Pieces {
  private readonly maxPieces: number;
  private readonly window: number;
  /** Number of chunks delivered since all chunks were last processed. */
  private count = 0;
  /** Bytes in flight. */
  private untaken = 0;
  private gathered: Uint8Array | null = null;
  private length = 0;

  /**
   * @param maxPieces maximum number of chunks in flight; further output is joined into one chunk
   * @param window maximum number of bytes that are received but not processed
   */
  constructor(maxPieces: number, window: number) {
    this.maxPieces = maxPieces;
    this.window = window;
  }

  /** @returns the chunk to deliver now, with its own memory; null while it must wait */
  receive(bytes: Uint8Array): Uint8Array | null {
    if (this.count < this.maxPieces)
      // Copies a small chunk, which would otherwise retain its whole read buffer.
      return this.handOn(bytes.buffer.byteLength > 2 * bytes.length ? new Uint8Array(bytes) : bytes);
    this.gathered ??= new Uint8Array(this.window);
    this.gathered.set(bytes, this.length);
    this.length += bytes.length;
    return null;
  }

  /**
   * Marks bytes as processed.
   * @returns the chunk to deliver now, or null
   */
  take(bytes: number): Uint8Array | null {
    this.untaken -= bytes;
    if (this.untaken > 0) return null;
    this.count = 0;
    return this.rest();
  }

  /** Finishes the output. @returns the last chunk to deliver, or null */
  rest(): Uint8Array | null {
    const { gathered, length } = this;
    this.gathered = null;
    this.length = 0;
    return gathered === null ? null : this.handOn(gathered.subarray(0, length));
  }

  private handOn(bytes: Uint8Array): Uint8Array {
    this.count++;
    this.untaken += bytes.length;
    return bytes;
  }
}

/** The sending side. Queues terminal input, and splits it into frames that fit the window. */
export class InputQueue {
  private readonly window: number;
  private readonly pieceBytes: number;
  private readonly pieces: Uint8Array[] = [];
  /** Number of bytes of the first chunk that have already been sent. */
  private sent = 0;
  waiting = 0;
  /** Number of bytes sent but not yet credited. */
  private outstanding = 0;

  /**
   * @param window     maximum number of bytes in flight
   * @param pieceBytes maximum size of one frame
   */
  constructor(window: number, pieceBytes: number) {
    this.window = window;
    this.pieceBytes = pieceBytes;
  }

  /** @returns false if more bytes are queued than fit into the window */
  push(bytes: Uint8Array): boolean {
    if (bytes.length > 0) this.pieces.push(bytes);
    this.waiting += bytes.length;
    return this.waiting <= this.window - this.outstanding;
  }

  /** Removes and returns the next bytes to send, and joins small chunks. @returns null if nothing may be sent */
  next(): Uint8Array | null {
    const length = Math.min(this.waiting, this.pieceBytes, this.window - this.outstanding);
    if (length === 0) return null;
    const whole = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const first = this.pieces[0]!;
      const part = first.subarray(this.sent, this.sent + length - at);
      whole.set(part, at);
      at += part.length;
      this.sent += part.length;
      if (this.sent < first.length) break;
      this.pieces.shift();
      this.sent = 0;
    }
    this.waiting -= length;
    this.outstanding += length;
    return whole;
  }

  credit(bytes: number): boolean {
    this.outstanding -= bytes;
    return this.outstanding >= 0;
  }
}
