import type { Sample } from '@muster/protocol';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { LineFile } from '../host/files/line-file.ts';
import type { SampleBuffer } from './sample-buffer.ts';
import { linesOf, rowsOf, samplesOf } from './sample-lines.ts';

/** Age at which an unsent sample is written to disk. */
const maxUnsavedMs = 600_000;
const minDelayMs = 1_000;
/** Maximum number of bytes to read: twice the maximum size of the file. */
const maxBytes = 4 * 1024 * 1024;

export interface SavedSamplesOptions {
  path: string;
  /** Returns the agent's current ID, which may change. */
  nodeId: () => string;
  buffer: SampleBuffer;
  clock: Clock;
  log: Pick<Log, 'info' | 'warn'>;
}

/**
 * Saves unsent samples to a file, so that they outlive this process. Samples that are sent within ten minutes are never
 * written. Others are appended every ten minutes and when the agent stops. Sent samples stay in the file until all
 * samples are sent or the agent stops. If the agent is killed, they are resent, and the orchestrator ignores the
 * duplicates.
 */
export class SavedSamples {
  readonly #options: SavedSamplesOptions;
  readonly #file: LineFile;
  /** Indexes of the samples in the file, and the agent ID in its header; null if the file does not exist. */
  #saved: { from: number; to: number; nodeId: string } | null = null;
  #saving: Promise<void> | null = null;
  #cancelTimer: (() => void) | null = null;
  #hasWarned = false;

  constructor(options: SavedSamplesOptions) {
    this.#options = options;
    this.#file = new LineFile(options.path);
  }

  /** Reads the previous process's samples into the empty buffer. Never throws. */
  restore(): void {
    const { path, buffer, log } = this.#options;
    const nodeId = this.#options.nodeId();
    try {
      const read = this.#file.read(maxBytes);
      if (read === null) return;
      const found = samplesOf(read.values, nodeId);
      for (const sample of found?.samples ?? []) buffer.push(sample);
      if (found === null) log.warn({ path }, "ignored another agent's saved samples");
      const lost = read.damaged + (found?.invalid ?? 0);
      if (found !== null && lost > 0) log.warn({ path, lines: lost }, 'ignored damaged saved samples');
      if (buffer.end > 0)
        log.info({ samples: buffer.end - buffer.first }, 'loaded unsent samples that the previous process saved');
    } catch (error) {
      log.warn({ path, error }, 'failed to read saved samples; ignoring them');
    }
    // The range of usable samples. The file may contain others.
    this.#saved = { from: 0, to: buffer.end, nodeId };
  }

  /** Schedules a write after samples were added or sent. */
  changed(): void {
    const { buffer, clock } = this.#options;
    if (this.#saving !== null) return;
    if (this.#saved !== null && this.#saved.to <= buffer.first) this.#remove();
    if (this.#cancelTimer !== null || this.#firstUnsaved === buffer.end) return;
    const age = clock.now() - buffer.timeOf(this.#firstUnsaved) * 1000;
    this.#wait(Math.min(maxUnsavedMs, Math.max(minDelayMs, maxUnsavedMs - age)));
  }

  /**
   * Saves the unsent samples after the last change to the buffer. Afterward, the file contains exactly these samples.
   */
  async end(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = () => {};
    await this.#saving;
    const { first, end } = this.#options.buffer;
    if (first === end) this.#remove();
    else if (this.#firstUnsaved < end || (this.#saved?.from ?? first) < first || !this.#isOwn) await this.#save(true);
  }

  get #firstUnsaved(): number {
    return Math.max(this.#options.buffer.first, this.#saved?.to ?? 0);
  }

  get #isOwn(): boolean {
    return this.#saved?.nodeId === this.#options.nodeId();
  }

  #wait(ms: number): void {
    const { buffer, clock } = this.#options;
    this.#cancelTimer = clock.after(ms, () => {
      this.#cancelTimer = null;
      const isOld =
        this.#firstUnsaved < buffer.end && clock.now() - buffer.timeOf(this.#firstUnsaved) * 1000 >= maxUnsavedMs;
      if (isOld) void this.#save(false).then(() => this.changed());
      else this.changed();
    });
  }

  /**
   * Writes the file. Never rejects.
   * @param isLast whether to remove sent samples from the file
   */
  async #save(isLast: boolean): Promise<void> {
    this.#saving = this.#write(isLast).catch((error: unknown) => {
      if (!this.#hasWarned)
        this.#options.log.warn({ error }, 'failed to save unsent samples to disk; keeping them in memory');
      this.#hasWarned = true;
      this.#cancelTimer ??= this.#options.clock.after(maxUnsavedMs, () => {
        this.#cancelTimer = null;
        this.changed();
      });
    });
    await this.#saving;
    this.#saving = null;
  }

  async #write(isLast: boolean): Promise<void> {
    const { buffer } = this.#options;
    const { end } = buffer;
    const nodeId = this.#options.nodeId();
    let from = this.#saved?.from ?? buffer.first;
    // Sent and dropped samples stay in the file until there are more of them than the buffer can hold.
    const canAppend = buffer.first - from <= (isLast ? 0 : buffer.capacity);
    const isAppended =
      this.#isOwn && canAppend && (await this.#file.append(rowsOf(this.#between(this.#firstUnsaved, end))));
    if (!isAppended) {
      from = Math.min(buffer.first, end);
      await this.#file.replace(linesOf(nodeId, this.#between(from, end)));
    }
    this.#saved = { from, to: end, nodeId };
    this.#hasWarned = false;
  }

  #between(from: number, to: number): Sample[] {
    return Array.from({ length: to - from }, (_, n) => this.#options.buffer.at(from + n));
  }

  #remove(): void {
    if (this.#saved === null) return;
    try {
      this.#file.remove();
      this.#saved = null;
    } catch (error) {
      if (!this.#hasWarned) this.#options.log.warn({ error }, 'failed to remove sent samples from disk');
      this.#hasWarned = true;
    }
  }
}
