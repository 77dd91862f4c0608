import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isUlid } from '@muster/protocol';
import type { Clock } from '../../../../lib/src/clock.ts';
import { maxLineBytes } from '../cast.ts';
import { shownBytes, wholeLines } from './transcript-lines.ts';
import { FileRecording, type Recording, type TranscriptDigest, TranscriptSync } from './transcript-writer.ts';

/** Transcripts of terminal sessions: a file `ID.cast` in the data directory for each; see `cast.ts`. */
export interface Transcripts {
  /**
   * Starts the transcript of a session that has none.
   * @param onFailure called once when the file can no longer be written or synced
   * @throws an error of the file system
   */
  create(sessionId: string, onFailure: (reason: Error) => void): Promise<Recording>;
  /** Whether the session has a transcript. */
  has(sessionId: string): Promise<boolean>;
  /** The output as it was shown; null without a transcript. */
  raw(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** The file, as far as it is written; null without a transcript. */
  cast(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** Bytes `from` to `to` of the file, or fewer at its end. @throws an error of the file system */
  part(sessionId: string, from: number, to: number): Promise<Uint8Array>;
  /** Cuts off an incomplete last line that a killed process left: it was never shown. */
  repair(sessionId: string): Promise<void>;
  /** The digest of the file; null without a transcript. */
  digest(sessionId: string): Promise<TranscriptDigest | null>;
  /** Removes the transcript of the session, if any. */
  remove(sessionId: string): Promise<void>;
  /** The sessions with a transcript. */
  ids(): Promise<string[]>;
  /** Bytes recorded since the start. */
  readonly recorded: number;
  /** Syncs of files since the start. */
  readonly syncs: number;
  /** Stops syncing. Finish all recordings first. */
  stop(): void;
}

/** @param directory created if missing, accessible to its owner only */
export async function openTranscripts(directory: string, clock: Clock): Promise<Transcripts> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const sync = new TranscriptSync(clock);
  const recordings = new Map<string, Recording>();
  let recorded = 0;
  const pathOf = (sessionId: string) => join(directory, `${sessionId}.cast`);
  /** Bytes that may be read; null when there is no file. */
  const lengthOf = async (sessionId: string): Promise<number | null> => {
    // Refuses ids that could name a path.
    if (!isUlid(sessionId)) return null;
    const recording = recordings.get(sessionId);
    if (recording) return recording.written;
    try {
      return (await stat(pathOf(sessionId))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  };
  const cast = async (sessionId: string) => {
    const length = await lengthOf(sessionId);
    return length === null ? null : bytesOf(pathOf(sessionId), length);
  };
  const part = async (sessionId: string, from: number, to: number) => {
    const handle = await open(pathOf(sessionId), 'r');
    try {
      const bytes = new Uint8Array(Math.max(0, to - from));
      let length = 0;
      for (let read = -1; read !== 0 && length < bytes.length; length += read)
        read = (await handle.read(bytes, length, bytes.length - length, from + length)).bytesRead;
      return bytes.subarray(0, length);
    } finally {
      await handle.close();
    }
  };
  return {
    async create(sessionId, onFailure) {
      if (!isUlid(sessionId)) throw new TypeError(`${sessionId} is not a session id`);
      const handle = await open(pathOf(sessionId), 'ax', 0o600);
      try {
        await syncDirectory(directory);
      } catch (error) {
        await handle.close();
        await rm(pathOf(sessionId), { force: true });
        throw error;
      }
      const onWritten = (bytes: number) => {
        recorded += bytes;
      };
      const recording = new FileRecording({ handle, path: pathOf(sessionId), sync, onFailure, onWritten });
      recordings.set(sessionId, recording);
      return {
        get written() {
          return recording.written;
        },
        get size() {
          return recording.size;
        },
        append: (lines, done) => recording.append(lines, done),
        finish: () => recording.finish().finally(() => recordings.delete(sessionId)),
      };
    },
    has: async (sessionId) => (await lengthOf(sessionId)) !== null,
    cast,
    async raw(sessionId) {
      const bytes = await cast(sessionId);
      return bytes === null ? null : shownBytes(bytes);
    },
    part,
    async repair(sessionId) {
      const length = await lengthOf(sessionId);
      if (length === null || recordings.has(sessionId)) return;
      const from = Math.max(0, length - 2 * maxLineBytes);
      const end = from + wholeLines(await part(sessionId, from, length));
      // No line is that long: the file was not written by Muster.
      if (end === length || (end === from && from > 0)) return;
      const handle = await open(pathOf(sessionId), 'r+');
      try {
        await handle.truncate(end);
        await handle.datasync();
      } finally {
        await handle.close();
      }
    },
    async digest(sessionId) {
      const pieces = await cast(sessionId);
      if (pieces === null) return null;
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const piece of pieces) {
        hash.update(piece);
        bytes += piece.length;
      }
      return { sha256: hash.digest('hex'), bytes };
    },
    async remove(sessionId) {
      if (isUlid(sessionId)) await rm(pathOf(sessionId), { force: true });
    },
    async ids() {
      const names = (await readdir(directory)).filter((name) => name.endsWith('.cast'));
      return names.map((name) => name.slice(0, -'.cast'.length)).filter(isUlid);
    },
    get recorded() {
      return recorded;
    },
    get syncs() {
      return sync.count;
    },
    stop: () => sync.stop(),
  };
}

/** Makes the name of a new file survive a power failure. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Opens the file at the first read, so that an unread iterator needs no closing. */
async function* bytesOf(file: string, length: number): AsyncGenerator<Uint8Array> {
  if (length > 0) yield* createReadStream(file, { end: length - 1 }) as AsyncIterable<Buffer>;
}
