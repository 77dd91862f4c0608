import { createReadStream } from 'node:fs';
import { access, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isUlid } from '@muster/protocol';

/**
 * What terminals showed, in files of the data directory, two for each session: `ID.raw` holds the bytes as they came,
 * `ID.timing` a line of JSON for each piece of them and each change of size:
 *
 *     {"at":0,"cols":80,"rows":24}
 *     {"at":153,"bytes":42}
 *
 * `at` counts milliseconds from the opening. The bytes are written first: what a crash left without a line is there all
 * the same.
 */
export interface Transcripts {
  /** Whether anything is kept of the session. */
  has(sessionId: string): Promise<boolean>;
  /** The bytes as they came; null when nothing is kept. */
  raw(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** When what came, in its order; null when nothing is kept. Lines that are no such lines are left out. */
  timing(sessionId: string): Promise<AsyncIterable<TranscriptMark> | null>;
  /** Removes what is kept of the session, if anything. */
  remove(sessionId: string): Promise<void>;
}

export type TranscriptMark =
  | { readonly at: number; readonly bytes: number }
  | { readonly at: number; readonly cols: number; readonly rows: number };

/** @param directory made when it is not there, for its owner alone */
export async function openTranscripts(directory: string): Promise<Transcripts> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const fileOf = async (sessionId: string): Promise<string | null> => {
    // An id that is none names no file, whatever it looks like.
    if (!isUlid(sessionId)) return null;
    const file = join(directory, `${sessionId}.raw`);
    try {
      await access(file);
      return file;
    } catch {
      return null;
    }
  };
  return {
    has: async (sessionId) => (await fileOf(sessionId)) !== null,
    async raw(sessionId) {
      const file = await fileOf(sessionId);
      return file === null ? null : bytesOf(file);
    },
    async timing(sessionId) {
      const file = await fileOf(sessionId);
      return file === null ? null : marks(file.replace(/raw$/, 'timing'));
    },
    async remove(sessionId) {
      if (!isUlid(sessionId)) return;
      // The bytes last: while they are there, a removal that was cut short can be seen and is done again.
      for (const kind of ['timing', 'raw']) await rm(join(directory, `${sessionId}.${kind}`), { force: true });
    },
  };
}

/** Opened when it is read and not before: what nobody reads needs no closing. */
async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(file) as AsyncIterable<Buffer>;
}

const longestLine = 256;

async function* marks(file: string): AsyncGenerator<TranscriptMark> {
  const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY });
  try {
    for await (const line of lines) {
      const mark = line.length <= longestLine ? markOf(line) : null;
      if (mark !== null) yield mark;
    }
  } catch (error) {
    // Killed before its first line was written.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  } finally {
    lines.close();
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** The last line may be cut off. */
function markOf(line: string): TranscriptMark | null {
  let read: unknown;
  try {
    read = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof read !== 'object' || read === null) return null;
  const { at, bytes, cols, rows } = read as Record<string, unknown>;
  if (!isCount(at)) return null;
  if (isCount(bytes)) return { at, bytes };
  return isCount(cols) && isCount(rows) ? { at, cols, rows } : null;
}
