import type { LiveFilter } from './live-frames.ts';

/** Maximum number of frames and bytes in a follower's buffer. A follower that exceeds either has fallen behind. */
const maxFrames = 5_000;
const maxBytes = 2 * 1024 * 1024;
/** Number of buffered frames at which a follower stops receiving hints. */
const busyFrames = 500;
/** Length from which a chunk gets no further frame, in characters. */
const chunkLength = 64 * 1024;

export interface LiveRequest {
  session: { operator_id: string; token_hash: string };
  filter: LiveFilter;
  after: number | null;
}

/** A client that follows live events, with its unread frames. */
export class Follower {
  readonly request: LiveRequest;
  readonly #over = new AbortController();
  #frames: { place: number; text: string }[] = [];
  #bytes = 0;
  /** Wakes the reader if it waits for a frame. */
  #wake: (() => void) | null = null;
  /** Position of the last event that was buffered for the follower or skipped by its filter. */
  place: number;
  /** The position of the last event that the client read. */
  taken: number;
  /** Whether a hint was dropped because the follower was busy. */
  missed = false;
  /** When the client last stopped reading, in monotonic milliseconds; null while the client waits for frames. */
  restsSince: number | null = null;
  lastSentAt: number;

  /** @param now monotonic time in milliseconds */
  constructor(request: LiveRequest, place: number, now: number) {
    this.request = request;
    this.place = place;
    this.taken = place;
    this.lastSentAt = now;
  }

  /** Aborted when the stream ends. */
  get ended(): AbortSignal {
    return this.#over.signal;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** Whether the client reads fast enough to receive hints. */
  get isFree(): boolean {
    return this.#frames.length < busyFrames;
  }

  /**
   * Buffers a frame.
   * @returns false if the follower has fallen behind and must resume after the last event that it read
   */
  give(text: string, now: number): boolean {
    this.#frames.push({ place: this.place, text });
    this.#bytes += text.length;
    this.lastSentAt = now;
    const keepsUp = this.#frames.length <= maxFrames && this.#bytes <= maxBytes;
    if (!keepsUp) {
      this.missed = true;
      this.#frames = [];
      this.#bytes = 0;
      this.place = this.taken;
    }
    this.#wake?.();
    return keepsUp;
  }

  /** Removes and returns buffered frames, in a chunk of about {@link chunkLength}. */
  take(): string {
    let count = 0;
    for (let size = 0; count < this.#frames.length && size < chunkLength; count++)
      size += (this.#frames[count] as { text: string }).text.length;
    const frames = this.#frames.splice(0, count);
    const piece = frames.map(({ text }) => text).join('');
    this.#bytes -= piece.length;
    this.taken = frames.at(-1)?.place ?? this.taken;
    return piece;
  }

  async arrival(): Promise<void> {
    await new Promise<void>((wake) => {
      this.#wake = wake;
    });
    this.#wake = null;
  }

  end(): void {
    this.#frames = [];
    this.#over.abort();
    this.#wake?.();
  }
}
