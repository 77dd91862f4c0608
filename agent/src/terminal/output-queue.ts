import { limits } from '@muster/protocol/wire';

/** What a terminal may send at most, and at what pace; bytes and milliseconds. */
export interface OutputLimits {
  readonly windowBytes: number;
  readonly frameBytes: number;
  /** Frames of fewer bytes go no faster than one each `pauseMs`. */
  readonly smallBytes: number;
  readonly pauseMs: number;
}

const outputLimits: OutputLimits = {
  windowBytes: limits.terminalOutputWindowBytes,
  frameBytes: limits.terminalFrameBytes,
  smallBytes: limits.terminalSmallFrameBytes,
  // 200 a second, where 250 are allowed.
  pauseMs: 5,
};

/**
 * What a terminal has shown and was not sent yet, and when how much of it may be. The first bytes after a pause go at
 * once, so that an echo is not held up; what comes in drops after that is put together.
 */
export class OutputQueue {
  readonly #limits: OutputLimits;
  readonly #bytes: Buffer;
  #length = 0;
  #unacknowledged = 0;
  #sentAt = Number.NEGATIVE_INFINITY;

  /** @param pieceBytes the most that is added at a time */
  constructor(pieceBytes: number, options: OutputLimits = outputLimits) {
    this.#limits = options;
    this.#bytes = Buffer.allocUnsafeSlow(options.frameBytes + pieceBytes);
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Whether to read on: a frame is not full yet. */
  get hasRoom(): boolean {
    return this.#length < this.#limits.frameBytes;
  }

  /** Adds what was shown, while there is room. */
  add(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** @returns false when more is given back than was sent */
  credited(bytes: number): boolean {
    if (bytes > this.#unacknowledged) return false;
    this.#unacknowledged -= bytes;
    return true;
  }

  /**
   * Makes the next frame, which counts as sent then.
   * @param frame makes it from the queue's own memory, by a copy
   * @returns null: nothing may be sent now
   */
  take<Frame>(now: number, frame: (bytes: Uint8Array) => Frame): Frame | null {
    const size = this.#nextSize();
    if (size === 0 || now < this.#dueAt(size)) return null;
    const next = frame(this.#bytes.subarray(0, size));
    this.#bytes.copyWithin(0, size, this.#length);
    this.#length -= size;
    this.#unacknowledged += size;
    this.#sentAt = now;
    return next;
  }

  /** When something may be sent if nothing else happens; null while that waits for credit, or for something to send. */
  dueAt(): number | null {
    const size = this.#nextSize();
    return size === 0 ? null : this.#dueAt(size);
  }

  #nextSize(): number {
    const { windowBytes, frameBytes } = this.#limits;
    return Math.min(this.#length, windowBytes - this.#unacknowledged, frameBytes);
  }

  #dueAt(size: number): number {
    return size < this.#limits.smallBytes ? this.#sentAt + this.#limits.pauseMs : Number.NEGATIVE_INFINITY;
  }
}
