import { createHash } from 'node:crypto';
import type { Recording, TranscriptDigest } from '../src/store/transcripts/transcripts.ts';

/** A recording in memory that writes immediately or when the test requests it. */
export class MemoryRecording implements Recording {
  text = '';
  finished = false;
  /** Whether writes wait for {@link write}. */
  slow = false;
  written = 0;
  size = 0;
  #waiting: { lines: string; done: (() => void) | undefined }[] = [];

  append(lines: string, done?: () => void): void {
    this.#waiting.push({ lines, done });
    this.size += Buffer.byteLength(lines);
    if (!this.slow) this.write();
  }

  write(): void {
    const batch = this.#waiting;
    this.#waiting = [];
    this.text += batch.map(({ lines }) => lines).join('');
    this.written = this.size;
    for (const { done } of batch) done?.();
  }

  async finish(): Promise<TranscriptDigest> {
    this.finished = true;
    return { sha256: createHash('sha256').update(this.text).digest('hex'), bytes: this.written };
  }

  /** Kind and content of each event. */
  get events(): [string, string][] {
    const lines = this.text.split('\n').slice(1, -1);
    return lines.map((line) => (JSON.parse(line) as [number, string, string]).slice(1) as [string, string]);
  }
}
