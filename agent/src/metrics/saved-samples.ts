import type { Sample } from '@muster/protocol';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { LineFile } from '../host/files/line-file.ts';
import type { SampleBuffer } from './sample-buffer.ts';
import { linesOf, rowsOf, samplesOf } from './sample-lines.ts';

/** A sample that nobody has taken is only in memory for so long. Milliseconds. */
const unsavedMs = 600_000;
const soonMs = 1_000;
/** Twice what the file ever holds. Bytes. */
const mostBytes = 4 * 1024 * 1024;

export interface SavedSamplesOptions {
  path: string;
  /** Who the agent is by now. */
  nodeId: () => string;
  buffer: SampleBuffer;
  clock: Clock;
  log: Pick<Log, 'info' | 'warn'>;
}

/**
 * A file for samples that nobody takes, so that they outlive this process. Those that are taken soon after are never
 * written; the others are added ten minutes' worth at a time, and at the end. What was taken stays in the file until all of
 * it was, or the end: sent again after a kill, the orchestrator has it already.
 */
export class SavedSamples {
  readonly #options: SavedSamplesOptions;
  readonly #file: LineFile;
  /** Which samples are in the file, by their numbers, and as whose; null when there is none. */
  #saved: { from: number; to: number; nodeId: string } | null = null;
  #saving: Promise<void> | null = null;
  #callOff: (() => void) | null = null;
  #saidFailing = false;

  constructor(options: SavedSamplesOptions) {
    this.#options = options;
    this.#file = new LineFile(options.path);
  }

  /** Puts what the last process left into the buffer, which is empty. Whatever is there, it never throws. */
  restore(): void {
    const { path, buffer, log } = this.#options;
    const nodeId = this.#options.nodeId();
    try {
      const read = this.#file.read(mostBytes);
      if (read === null) return;
      const found = samplesOf(read.values, nodeId);
      for (const sample of found?.samples ?? []) buffer.push(sample);
      if (found === null) log.warn({ path }, 'these are not samples of this agent: they are passed over');
      const lost = read.damaged + (found?.strange ?? 0);
      if (found !== null && lost > 0)
        log.warn({ path, lines: lost }, 'some of the samples that were not sent cannot be read, and are passed over');
      if (buffer.end > 0)
        log.info({ samples: buffer.end - buffer.first }, 'samples of before the start wait to be sent');
    } catch (error) {
      log.warn({ path, error }, 'the samples that were not sent cannot be read, and are passed over');
    }
    // Not what it holds now, but what is still of use in it.
    this.#saved = { from: 0, to: buffer.end, nodeId };
  }

  /** Some were added, or taken. */
  changed(): void {
    const { buffer, clock } = this.#options;
    if (this.#saving !== null) return;
    if (this.#saved !== null && this.#saved.to <= buffer.first) this.#remove();
    if (this.#callOff !== null || this.#firstUnsaved === buffer.end) return;
    const age = clock.now() - buffer.timeOf(this.#firstUnsaved) * 1000;
    this.#wait(Math.min(unsavedMs, Math.max(soonMs, unsavedMs - age)));
  }

  /** Nothing is added or taken any more. Resolves when all that nobody has taken is on disk, and nothing else is. */
  async end(): Promise<void> {
    this.#callOff?.();
    this.#callOff = () => {};
    await this.#saving;
    const { first, end } = this.#options.buffer;
    if (first === end) this.#remove();
    else if (this.#firstUnsaved < end || (this.#saved?.from ?? first) < first || !this.#isOurs) await this.#save(true);
  }

  get #firstUnsaved(): number {
    return Math.max(this.#options.buffer.first, this.#saved?.to ?? 0);
  }

  get #isOurs(): boolean {
    return this.#saved?.nodeId === this.#options.nodeId();
  }

  #wait(ms: number): void {
    const { buffer, clock } = this.#options;
    this.#callOff = clock.after(ms, () => {
      this.#callOff = null;
      const isOld =
        this.#firstUnsaved < buffer.end && clock.now() - buffer.timeOf(this.#firstUnsaved) * 1000 >= unsavedMs;
      if (isOld) void this.#save(false).then(() => this.changed());
      else this.changed();
    });
  }

  /** @param isLast it is to hold nothing that was taken. Never rejects. */
  async #save(isLast: boolean): Promise<void> {
    this.#saving = this.#write(isLast).catch((error: unknown) => {
      if (!this.#saidFailing)
        this.#options.log.warn({ error }, 'samples that nobody takes cannot be kept on disk, only in memory');
      this.#saidFailing = true;
      this.#callOff ??= this.#options.clock.after(unsavedMs, () => {
        this.#callOff = null;
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
    // Those that were taken, or made room, are left in it until they are as many as the others may be.
    const isTight = buffer.first - from <= (isLast ? 0 : buffer.capacity);
    const isAdded =
      this.#isOurs && isTight && (await this.#file.append(rowsOf(this.#between(this.#firstUnsaved, end))));
    if (!isAdded) {
      from = Math.min(buffer.first, end);
      await this.#file.replace(linesOf(nodeId, this.#between(from, end)));
    }
    this.#saved = { from, to: end, nodeId };
    this.#saidFailing = false;
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
      if (!this.#saidFailing)
        this.#options.log.warn({ error }, 'samples that were sent cannot be removed from the disk');
      this.#saidFailing = true;
    }
  }
}
