/**
 * What holds the two ends of a terminal to each other: whoever sends may have so many bytes on the way, and gets them
 * back as the other end has done with them.
 */

/** Credits are given in steps, so that a keystroke's echo is not answered by a message of its own. */
const stepsOfWindow = 4;

/** The receiving end: holds an agent to its window of output, and says when to give how much of it back. */
export class OutputWindow {
  private readonly size: number;
  /** Received, and not given back. */
  private outstanding = 0;
  /** Of that, what is done with and waits to be worth a message. */
  private done = 0;

  constructor(size: number) {
    this.size = size;
  }

  /** @returns false when the other end has sent more than it may */
  receive(bytes: number): boolean {
    this.outstanding += bytes;
    return this.outstanding <= this.size;
  }

  /**
   * So many bytes are done with.
   * @returns how many to give back now: 0 until it is worth it
   * @throws RangeError when there were not so many
   */
  take(bytes: number): number {
    if (!(bytes >= 0 && bytes <= this.outstanding - this.done))
      throw new RangeError(`${bytes} bytes of a terminal taken, of ${this.outstanding - this.done} that it has shown`);
    this.done += bytes;
    if (this.done * stepsOfWindow < this.size) return 0;
    const credit = this.done;
    this.outstanding -= credit;
    this.done = 0;
    return credit;
  }
}

/**
 * Puts together what is shown in more pieces than memory should be spent on: a byte is held by the window, but a piece of
 * one byte takes hundreds of them on its way to the file and to whoever looks on.
 */
export class Pieces {
  private readonly most: number;
  private readonly window: number;
  /** Handed on since all that was handed on had been taken. */
  private count = 0;
  /** Bytes of those that are not taken. */
  private untaken = 0;
  private gathered: Uint8Array | null = null;
  private length = 0;

  /**
   * @param most   pieces on their way; what comes then becomes one, once they have been taken
   * @param window bytes that have come and are not taken, at the most
   */
  constructor(most: number, window: number) {
    this.most = most;
    this.window = window;
  }

  /** @returns what is to be handed on now: memory of its own; null while it has to wait */
  receive(bytes: Uint8Array): Uint8Array | null {
    if (this.count < this.most)
      // A small one is copied, rather than that it keeps all that was read with it.
      return this.handOn(bytes.buffer.byteLength > 2 * bytes.length ? new Uint8Array(bytes) : bytes);
    this.gathered ??= new Uint8Array(this.window);
    this.gathered.set(bytes, this.length);
    this.length += bytes.length;
    return null;
  }

  /** So many bytes were taken. @returns what is to be handed on now, if anything */
  take(bytes: number): Uint8Array | null {
    this.untaken -= bytes;
    if (this.untaken > 0) return null;
    this.count = 0;
    return this.rest();
  }

  /** Nothing more comes. @returns what is to be handed on before that is told, if anything */
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

/** The sending end: what is to be typed, in the pieces in which it may go. */
export class InputQueue {
  private readonly window: number;
  private readonly pieceBytes: number;
  private readonly pieces: Uint8Array[] = [];
  /** Bytes of the first piece that have gone already. */
  private gone = 0;
  /** Bytes that wait for room. */
  waiting = 0;
  /** Sent, and not given back. */
  private outstanding = 0;

  /**
   * @param window what may be on the way
   * @param pieceBytes the most that goes at once
   */
  constructor(window: number, pieceBytes: number) {
    this.window = window;
    this.pieceBytes = pieceBytes;
  }

  /** @returns false when more waits now than there is room for */
  push(bytes: Uint8Array): boolean {
    if (bytes.length > 0) this.pieces.push(bytes);
    this.waiting += bytes.length;
    return this.waiting <= this.window - this.outstanding;
  }

  /** Takes out what goes next, of small pieces several together; null when nothing may. */
  next(): Uint8Array | null {
    const length = Math.min(this.waiting, this.pieceBytes, this.window - this.outstanding);
    if (length === 0) return null;
    const whole = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const first = this.pieces[0]!;
      const part = first.subarray(this.gone, this.gone + length - at);
      whole.set(part, at);
      at += part.length;
      this.gone += part.length;
      if (this.gone < first.length) break;
      this.pieces.shift();
      this.gone = 0;
    }
    this.waiting -= length;
    this.outstanding += length;
    return whole;
  }

  /** The other end has done with so many. @returns false when it had not so many */
  credit(bytes: number): boolean {
    this.outstanding -= bytes;
    return this.outstanding >= 0;
  }
}
