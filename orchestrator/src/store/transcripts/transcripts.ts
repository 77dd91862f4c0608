import { createHash } from 'node:crypto';

/** Hash and size of a complete transcript. */
export interface TranscriptDigest {
  /** SHA-256 of the whole transcript, in hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** A transcript that is being written. A line counts as recorded once it is kept even if the process is killed. */
export interface Recording {
  /** Number of recorded bytes, which are complete lines. */
  readonly written: number;
  /** Number of recorded and queued bytes. */
  readonly size: number;
  /**
   * Appends complete lines. Does nothing after a failure.
   * @param done called when the lines are recorded, in the order of the calls to `append`
   */
  append(lines: string, done?: () => void): void;
  /**
   * Stores the remaining lines durably, and ends the transcript. After a failure, the digest covers the lines that were
   * recorded.
   */
  finish(): Promise<TranscriptDigest>;
}

/** A range of session IDs, exclusive at both ends, in order. */
export interface IdRange {
  readonly after: string;
  readonly below: string;
  readonly limit: number;
}

/**
 * Transcripts of terminal sessions, in the format that `cast.ts` defines. With SQLite, each is a file in the data
 * directory; with PostgreSQL, its rows are in the database, so that all processes can read them.
 */
export interface Transcripts {
  /**
   * Starts the transcript of a session, which must not have one yet.
   * @param onFailure called at most once, if the transcript can no longer be stored
   * @throws a file system or database error
   */
  create(sessionId: string, onFailure: (reason: Error) => void): Promise<Recording>;
  has(sessionId: string): Promise<boolean>;
  /** Returns the exact output bytes that were shown; null if there is no transcript. */
  raw(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** Returns the content recorded so far; null if there is no transcript. */
  cast(sessionId: string): Promise<AsyncIterable<Uint8Array> | null>;
  /** Returns bytes `from` to `to`, or fewer at the end. @throws a file system or database error */
  part(sessionId: string, from: number, to: number): Promise<Uint8Array>;
  /**
   * Completes a transcript that another process left open; that process can no longer append to it. Removes an
   * incomplete last line, which that process wrote but did not show to any viewer.
   */
  repair(sessionId: string): Promise<void>;
  /** Returns the digest of the content; null if there is no transcript. */
  digest(sessionId: string): Promise<TranscriptDigest | null>;
  remove(sessionId: string): Promise<void>;
  /** Returns the sessions that have a transcript, in order. */
  ids(range: IdRange): Promise<string[]>;
  /** Number of bytes recorded since the process started. */
  readonly recorded: number;
  /** Number of syncs of files, or flushes of rows, since the process started. */
  readonly syncs: number;
  /** Stops syncing, and closes connections. All recordings must be finished before this call. */
  close(): Promise<void>;
}

/** Computes the digest of a transcript. */
export async function digestOf(pieces: AsyncIterable<Uint8Array>): Promise<TranscriptDigest> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of pieces) {
    hash.update(piece);
    bytes += piece.length;
  }
  return { sha256: hash.digest('hex'), bytes };
}
