import { createHash } from 'node:crypto';
import type { Clock } from '../../../../lib/src/clock.ts';
import { maxLineBytes } from '../cast.ts';
import { TranscriptFiles } from './transcript-files.ts';
import { completeLines, shownBytes } from './transcript-lines.ts';
import { FileRecording, type Recording, type TranscriptDigest, TranscriptSync } from './transcript-writer.ts';

/** Transcripts of terminal sessions. Each is a file `ID.cast` in the format that `cast.ts` defines. */
export interface Transcripts {
  /**
   * Starts the transcript of a session, which must not have one yet.
   * @param onFailure called at most once, if the file can no longer be written or synced
   * @throws a file system error
   */
  create(sessionId: string, onFailure: (reason: Error) => void): Promise<Recording>;
  has(sessionId: string): Promise<boolean>;
  /** Returns the exact output bytes that were shown; null if there is no transcript. */
  raw(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** Returns the content written to the file so far; null if there is no transcript. */
  cast(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** Returns bytes `from` to `to` of the file, or fewer at its end. @throws a file system error */
  part(sessionId: string, from: number, to: number): Promise<Uint8Array>;
  /** Removes an incomplete last line, which a killed process wrote but did not show to any viewer. */
  repair(sessionId: string): Promise<void>;
  /** Returns the digest of the file; null if there is no transcript. */
  digest(sessionId: string): Promise<TranscriptDigest | null>;
  remove(sessionId: string): Promise<void>;
  ids(): Promise<string[]>;
  /** Number of bytes recorded since the process started. */
  readonly recorded: number;
  /** Number of file syncs since the process started. */
  readonly syncs: number;
  /** Stops syncing. All recordings must be finished before this call. */
  stop(): void;
}

/** @param directory created if it does not exist; accessible only to its owner */
export async function openTranscripts(directory: string, clock: Clock): Promise<Transcripts> {
  const files = await TranscriptFiles.open(directory);
  const sync = new TranscriptSync(clock);
  const recordings = new Map<string, Recording>();
  let recorded = 0;
  /**
   * Returns the number of readable bytes, excluding a line that is still being written; null if there is no transcript.
   */
  const lengthOf = async (sessionId: string): Promise<number | null> =>
    recordings.get(sessionId)?.written ?? (await files.size(sessionId));
  const cast = async (sessionId: string) => {
    const length = await lengthOf(sessionId);
    return length === null ? null : files.beginning(sessionId, length);
  };
  return {
    async create(sessionId, onFailure) {
      const { path, handle } = await files.create(sessionId);
      const onWritten = (bytes: number) => {
        recorded += bytes;
      };
      const recording = new FileRecording({ handle, path, sync, onFailure, onWritten });
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
    part: (sessionId, from, to) => files.part(sessionId, from, to),
    async repair(sessionId) {
      const length = await lengthOf(sessionId);
      if (length === null || recordings.has(sessionId)) return;
      const from = Math.max(0, length - 2 * maxLineBytes);
      const end = from + completeLines(await files.part(sessionId, from, length));
      // Muster never writes a line this long, so another program must have changed the file.
      if (end === length || (end === from && from > 0)) return;
      await files.truncate(sessionId, end);
    },
    async digest(sessionId) {
      const pieces = await cast(sessionId);
      return pieces === null ? null : digestOf(pieces);
    },
    remove: (sessionId) => files.remove(sessionId),
    ids: () => files.ids(),
    get recorded() {
      return recorded;
    },
    get syncs() {
      return sync.count;
    },
    stop: () => sync.stop(),
  };
}

async function digestOf(pieces: AsyncIterable<Uint8Array>): Promise<TranscriptDigest> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of pieces) {
    hash.update(piece);
    bytes += piece.length;
  }
  return { sha256: hash.digest('hex'), bytes };
}
