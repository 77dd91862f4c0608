import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isUlid } from '@muster/protocol';
import type { Clock } from '../../../../lib/src/clock.ts';
import { longestLine } from '../cast.ts';
import { shownBytes, wholeLines } from './transcript-lines.ts';
import { FileRecording, type Recording, type TranscriptDigest, TranscriptSync } from './transcript-writer.ts';

/** What terminals showed: a file of the data directory for each session, `ID.cast`, as `cast.ts` says. */
export interface Transcripts {
  /**
   * Begins one, for a session that has none.
   * @param onFailure it can no longer be written or synced; told once
   * @throws an error of the file system
   */
  create(sessionId: string, onFailure: (reason: Error) => void): Promise<Recording>;
  /** Whether anything is kept of the session. */
  has(sessionId: string): Promise<boolean>;
  /** The bytes as they were shown; null when nothing is kept. */
  raw(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** The file itself, as far as it is written; null when nothing is kept. */
  cast(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** Bytes of the file from a place to another, at most so many as there are. @throws an error of the file system */
  part(sessionId: string, from: number, to: number): Promise<Uint8Array>;
  /** Cuts off the line in which a process that was killed left the file: nobody was shown it. */
  mend(sessionId: string): Promise<void>;
  /** Of what is in the file; null when nothing is kept. */
  digest(sessionId: string): Promise<TranscriptDigest | null>;
  /** Removes what is kept of the session, if anything. */
  remove(sessionId: string): Promise<void>;
  /** Of all sessions of which something is kept. */
  ids(): Promise<string[]>;
  /** Bytes recorded since the start. */
  readonly recorded: number;
  /** Syncs of files since the start. */
  readonly syncs: number;
  /** Ends the syncs that are due. Recordings are to be finished before. */
  stop(): void;
}

/** @param directory made when it is not there, for its owner alone */
export async function openTranscripts(directory: string, clock: Clock): Promise<Transcripts> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const sync = new TranscriptSync(clock);
  const recordings = new Map<string, Recording>();
  let recorded = 0;
  const pathOf = (sessionId: string) => join(directory, `${sessionId}.cast`);
  /** Bytes that may be read; null when there is no file. */
  const lengthOf = async (sessionId: string): Promise<number | null> => {
    // An id that is none names no file, whatever it looks like.
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
      if (!isUlid(sessionId)) throw new TypeError(`${sessionId} is no id of a session`);
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
    async mend(sessionId) {
      const length = await lengthOf(sessionId);
      if (length === null || recordings.has(sessionId)) return;
      const from = Math.max(0, length - 2 * longestLine);
      const end = from + wholeLines(await part(sessionId, from, length));
      // Further back than any line reaches it is a file that is none of ours.
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

/** So that a new file has its name after a power cut. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Opened when it is read and not before: what nobody reads needs no closing. */
async function* bytesOf(file: string, length: number): AsyncGenerator<Uint8Array> {
  if (length > 0) yield* createReadStream(file, { end: length - 1 }) as AsyncIterable<Buffer>;
}
