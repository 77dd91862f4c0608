import { createHash } from 'node:crypto';
import type { Recording, TranscriptDigest } from './transcripts.ts';

/** Appended lines that are stored as one row. */
export interface RecordedChunk {
  readonly start: number;
  readonly bytes: Buffer;
  /** Called once, when the row is committed for the first time. */
  dones: (() => void)[];
}

/** Size above which no further lines are added to a row, in bytes. */
const chunkBytes = 256 * 1024;

/**
 * A transcript whose lines become rows. Keeps the rows that a crash of the database server could lose, so that they can
 * be stored again.
 */
export class RowRecording implements Recording {
  readonly sessionId: string;
  readonly #onWork: (recording: RowRecording) => void;
  readonly #onFailure: (reason: Error) => void;
  readonly #hash = createHash('sha256');
  #waiting: { bytes: Buffer; done: (() => void) | undefined }[] = [];
  #waitingBytes = 0;
  /** Chunks that are not known to be durable, in order. The first `#stored` of them are committed. */
  #chunks: RecordedChunk[] = [];
  #stored = 0;
  #written = 0;
  #flushed = 0;
  #failed = false;
  #ended = false;
  #finished: PromiseWithResolvers<void> | null = null;

  /**
   * @param onWork called when there are lines to store, and when the recording must be finished
   * @param onFailure called at most once
   */
  constructor(sessionId: string, onWork: (recording: RowRecording) => void, onFailure: (reason: Error) => void) {
    this.sessionId = sessionId;
    this.#onWork = onWork;
    this.#onFailure = onFailure;
  }

  get written(): number {
    return this.#written;
  }

  get size(): number {
    const last = this.#chunks.at(-1);
    return this.#waitingBytes + (last ? last.start + last.bytes.length : this.#written);
  }

  /** Number of committed bytes that a crash of the server could lose. */
  get unflushed(): number {
    return this.#written - this.#flushed;
  }

  get failed(): boolean {
    return this.#failed;
  }

  /** Whether nothing remains to be stored, because the recording failed or all of its lines are durable. */
  get over(): boolean {
    return this.#failed || this.#ended;
  }

  /** Whether rows that were committed before the connection was lost still need to be stored again. */
  get restoring(): boolean {
    const next = this.#chunks[this.#stored];
    return next !== undefined && next.start < this.#written;
  }

  /** Whether all lines are committed, and no more will be appended. */
  get drained(): boolean {
    return this.#finished !== null && this.#waiting.length === 0 && this.#stored === this.#chunks.length;
  }

  /** Length of the whole transcript if all of its lines are committed; null if more lines may follow. */
  get closesAt(): number | null {
    return this.#finished !== null && this.size === this.#written ? this.#written : null;
  }

  append(lines: string, done?: () => void): void {
    if (this.#failed || this.#finished) return;
    const bytes = Buffer.from(lines);
    this.#waiting.push({ bytes, done });
    this.#waitingBytes += bytes.length;
    this.#onWork(this);
  }

  async finish(): Promise<TranscriptDigest> {
    if (!this.#failed) {
      this.#finished ??= Promise.withResolvers();
      this.#onWork(this);
      await this.#finished.promise;
    }
    return { sha256: this.#hash.copy().digest('hex'), bytes: this.#written };
  }

  /** Returns the next chunks to store, in order; none if all lines are stored. @param bytes approximate maximum size */
  next(bytes: number): RecordedChunk[] {
    while (this.#waiting.length > 0) this.#chunks.push(this.#joined());
    let total = 0;
    const next: RecordedChunk[] = [];
    for (const chunk of this.#chunks.slice(this.#stored)) {
      if (next.length > 0 && total + chunk.bytes.length > bytes) break;
      next.push(chunk);
      total += chunk.bytes.length;
    }
    return next;
  }

  #joined(): RecordedChunk {
    const start = this.size - this.#waitingBytes;
    let length = 0;
    let count = 0;
    for (const { bytes } of this.#waiting) {
      if (count > 0 && length + bytes.length > chunkBytes) break;
      length += bytes.length;
      count++;
    }
    const joined = this.#waiting.splice(0, count);
    this.#waitingBytes -= length;
    return {
      start,
      bytes: Buffer.concat(joined.map(({ bytes }) => bytes)),
      dones: joined.flatMap(({ done }) => (done ? [done] : [])),
    };
  }

  /** Records that the next chunk is committed. @returns the number of bytes that were committed for the first time */
  store(chunk: RecordedChunk): number {
    if (this.over) return 0;
    this.#stored++;
    // The chunk was stored again, because the connection was lost.
    if (chunk.start + chunk.bytes.length <= this.#written && chunk.bytes.length > 0) return 0;
    this.#hash.update(chunk.bytes);
    this.#written += chunk.bytes.length;
    const { dones } = chunk;
    chunk.dones = [];
    for (const done of dones) done();
    return chunk.bytes.length;
  }

  /** Records that the first `bytes` bytes are durable. */
  flush(bytes: number): void {
    this.#flushed = Math.max(this.#flushed, bytes);
    let durable = 0;
    for (const { start, bytes: content } of this.#chunks.slice(0, this.#stored))
      if (start + content.length <= bytes) durable++;
      else break;
    this.#chunks.splice(0, durable);
    this.#stored -= durable;
  }

  /** Makes {@link next} return all chunks that are not known to be durable, because the server may have lost them. */
  storeAgain(): void {
    this.#stored = 0;
  }

  /** Resolves the promise of {@link finish}. Called when all lines are durable. */
  end(): void {
    this.#ended = true;
    this.#finished?.resolve();
  }

  fail(reason: Error): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#chunks = [];
    this.#stored = 0;
    this.#finished?.resolve();
    this.#onFailure(reason);
  }
}
