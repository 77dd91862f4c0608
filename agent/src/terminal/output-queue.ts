import { limits } from '@muster/protocol/wire';

/** Limits on the amount and rate of a terminal's output. */
export interface OutputLimits {
  readonly windowBytes: number;
  readonly frameBytes: number;
  /** Smaller frames are sent at most once every `pauseMs`. */
  readonly smallBytes: number;
  readonly pauseMs: number;
}

const outputLimits: OutputLimits = {
  windowBytes: limits.terminalOutputWindowBytes,
  frameBytes: limits.terminalFrameBytes,
  smallBytes: limits.terminalSmallFrameBytes,
  // Allows 200 frames a second. The limit is 250.
  pauseMs: 5,
};

/**
 * Unsent output of a terminal, with flow control. Sends the first bytes after a pause immediately, so that an echo is
 * not delayed, and combines the small chunks that follow.
 */
export class OutputQueue {
  readonly #limits: OutputLimits;
  readonly #bytes: Buffer;
  #length = 0;
  #unacknowledged = 0;
  #sentAt = Number.NEGATIVE_INFINITY;

  /** @param pieceBytes maximum size of one `add`, in bytes */
  constructor(pieceBytes: number, options: OutputLimits = outputLimits) {
    this.#limits = options;
    this.#bytes = Buffer.allocUnsafeSlow(options.frameBytes + pieceBytes);
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Whether to continue reading from the shell because the next frame is not full. */
  get hasSpace(): boolean {
    return this.#length < this.#limits.frameBytes;
  }

  /** Adds output. Call this only while `hasSpace` is true. */
  add(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /**
   * Handles a credit.
   * @returns false if it exceeds the number of bytes that were sent and not credited yet
   */
  credited(bytes: number): boolean {
    if (bytes > this.#unacknowledged) return false;
    this.#unacknowledged -= bytes;
    return true;
  }

  /**
   * Removes the next frame and counts it as sent.
   * @param frame builds a frame; it must copy the bytes
   * @returns null if nothing may be sent now
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

  /** Returns the time at which the next frame may be sent; null while there is no credit or no output. */
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
