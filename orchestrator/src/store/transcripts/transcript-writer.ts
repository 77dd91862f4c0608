import { createHash } from 'node:crypto';
import { type FileHandle, stat } from 'node:fs/promises';
import type { Clock } from '../../../../lib/src/clock.ts';
import { nullIfMissing } from '../../../../lib/src/missing-file.ts';
import type { Recording, TranscriptDigest } from './transcripts.ts';

/**
 * Sync interval in milliseconds. A power failure loses at most the output from one interval and one sync, which is less
 * than a second of output.
 */
const syncMs = 500;

/** Syncs changed recordings every `syncMs`, one file after another, so that syncs never block all I/O threads. */
export class TranscriptSync {
  readonly #clock: Clock;
  readonly #dirty = new Set<{ sync(): Promise<void> }>();
  #cancelTimer: (() => void) | null = null;
  #stopped = false;
  count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wants(recording: { sync(): Promise<void> }): void {
    this.#dirty.add(recording);
    if (!this.#stopped) this.#cancelTimer ??= this.#clock.after(syncMs, () => void this.#round());
  }

  forget(recording: { sync(): Promise<void> }): void {
    this.#dirty.delete(recording);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  async #round(): Promise<void> {
    const due = [...this.#dirty];
    this.#dirty.clear();
    for (const recording of due) await recording.sync();
    this.#cancelTimer = null;
    if (this.#dirty.size > 0 && !this.#stopped) this.#cancelTimer = this.#clock.after(syncMs, () => void this.#round());
  }
}

export interface FileRecordingParts {
  readonly handle: FileHandle;
  readonly path: string;
  readonly sync: TranscriptSync;
  /** Called at most once, if the file can no longer be written or synced. */
  readonly onFailure: (reason: Error) => void;
  readonly onWritten: (bytes: number) => void;
}

export class FileRecording implements Recording {
  readonly #parts: FileRecordingParts;
  readonly #hash = createHash('sha256');
  #waiting: { bytes: Buffer; done: (() => void) | undefined }[] = [];
  #waitingBytes = 0;
  #written = 0;
  #writing: Promise<void> | null = null;
  #syncing: Promise<void> | null = null;
  #failed = false;
  #closed = false;

  /** @param parts `handle` must refer to an empty file that is open for appending */
  constructor(parts: FileRecordingParts) {
    this.#parts = parts;
  }

  get written(): number {
    return this.#written;
  }

  get size(): number {
    return this.#written + this.#waitingBytes;
  }

  append(lines: string, done?: () => void): void {
    if (this.#failed || this.#closed) return;
    const bytes = Buffer.from(lines);
    this.#waiting.push({ bytes, done });
    this.#waitingBytes += bytes.length;
    this.#writing ??= this.#write();
  }

  async sync(): Promise<void> {
    if (this.#failed || this.#closed || this.#syncing) return;
    this.#syncing = this.#synced().catch((error: Error) => this.#fail(error));
    await this.#syncing;
    this.#syncing = null;
  }

  async #synced(): Promise<void> {
    const { handle, path, sync } = this.#parts;
    const written = this.#written;
    await handle.datasync();
    sync.count++;
    // Detects a deleted or replaced file, because writes to it would succeed but be lost.
    const opened = await handle.stat();
    const found = await stat(path).catch(nullIfMissing);
    if (found?.ino !== opened.ino || found.dev !== opened.dev) throw new Error('the transcript file was removed');
    if (opened.size < written) throw new Error('the transcript file was truncated');
  }

  async finish(): Promise<TranscriptDigest> {
    await this.#writing;
    await this.#syncing;
    await this.sync();
    this.#closed = true;
    this.#parts.sync.forget(this);
    // Removes a partial line, which was not shown to any viewer and is not covered by the hash.
    if (this.#failed) await this.#cutOff().catch(() => undefined);
    await this.#parts.handle.close().catch(() => undefined);
    return { sha256: this.#hash.digest('hex'), bytes: this.#written };
  }

  /** Writes the queued lines. Appends that arrive during a write share the next write. */
  async #write(): Promise<void> {
    // Ensures that this method does not complete, which resets `#writing`, before its promise is assigned to
    // `#writing`.
    await null;
    while (this.#waiting.length > 0 && !this.#failed) {
      const batch = this.#waiting;
      this.#waiting = [];
      const bytes =
        batch.length === 1 ? (batch[0] as { bytes: Buffer }).bytes : Buffer.concat(batch.map((b) => b.bytes));
      let inFile = 0;
      let failure: Error | null = null;
      try {
        while (inFile < bytes.length)
          inFile += (await this.#parts.handle.write(bytes, inFile, bytes.length - inFile, null)).bytesWritten;
      } catch (error) {
        failure = error as Error;
      }
      // If the disk is full, only part of a batch may be stored. Appends that were stored completely count as recorded,
      // because a batch may contain all output of a session.
      let complete = 0;
      let end = 0;
      for (const one of batch) {
        if (end + one.bytes.length > inFile) break;
        end += one.bytes.length;
        complete++;
      }
      this.#hash.update(bytes.subarray(0, end));
      this.#written += end;
      this.#waitingBytes -= end;
      this.#parts.onWritten(end);
      this.#parts.sync.wants(this);
      for (const { done } of batch.slice(0, complete)) done?.();
      if (failure) this.#fail(failure);
    }
    this.#writing = null;
  }

  async #cutOff(): Promise<void> {
    const { handle } = this.#parts;
    if ((await handle.stat()).size > this.#written) await handle.truncate(this.#written);
  }

  #fail(error: Error): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#parts.onFailure(error);
  }
}
