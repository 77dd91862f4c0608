import { isUlid } from '@muster/protocol';
import { type ClientBase, Pool } from 'pg';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import { rowTypes } from '../postgres/postgres-row-types.ts';
import { connectionSettings } from '../postgres/postgres-settings.ts';
import type { RowRecording } from './row-recording.ts';
import { RowWriter } from './row-writer.ts';
import { shownBytes } from './transcript-lines.ts';
import {
  contentOf,
  inTransaction,
  lengthOf,
  packNext,
  removeTranscript,
  sealTranscript,
  storeTranscript,
  transcriptIds,
} from './transcript-rows.ts';
import { digestOf, type IdRange, type Recording, type TranscriptDigest, type Transcripts } from './transcripts.ts';

export interface PostgresTranscriptsOptions {
  readonly url: string;
  /** Seconds after which the server cancels a statement; no limit by default. */
  readonly statementTimeout?: number;
  /** ID of this process. Only the process that created a transcript may append to it. */
  readonly incarnation: string;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
}

/** Pause in milliseconds before a failed recording is completed again. */
const retryMs = 5_000;

/** The transcripts in a migrated database. Opens connections only when they are needed. */
export class PostgresTranscripts implements Transcripts {
  readonly #incarnation: string;
  readonly #clock: Clock;
  readonly #log: PostgresTranscriptsOptions['log'];
  readonly #pool: Pool;
  readonly #writer: RowWriter;
  readonly #closing = new AbortController();
  /** Failed recordings to complete: the lengths of their digests, by session. */
  readonly #unsealed = new Map<string, number>();
  #cancelRetry: (() => void) | null = null;
  #packing: Promise<void> | null = null;
  #packsAgain = false;
  /** End of the last background task. */
  #background: Promise<unknown> = Promise.resolve();

  constructor({ url, statementTimeout, incarnation, clock, log }: PostgresTranscriptsOptions) {
    this.#incarnation = incarnation;
    this.#clock = clock;
    this.#log = log;
    // Without this limit, a disconnected machine's transactions would hold locks for hours.
    const server = { idle_in_transaction_session_timeout: '60s' };
    this.#pool = new Pool({ ...connectionSettings({ url, statementTimeout, server }), max: 3, types: rowTypes });
    this.#pool.on('error', (error) => log.warn({ err: error }, 'lost a connection to the transcript store'));
    this.#writer = new RowWriter({ url, incarnation, clock });
  }

  get recorded(): number {
    return this.#writer.recorded;
  }

  get syncs(): number {
    return this.#writer.flushes;
  }

  async create(sessionId: string, onFailure: (reason: Error) => void): Promise<Recording> {
    if (!isUlid(sessionId)) throw new TypeError(`${sessionId} is not a session id`);
    const { rowCount } = await this.#pool.query(
      'insert into terminal_transcripts (session_id, writer, bytes, packed) values ($1, $2, 0, 0) on conflict do nothing',
      [sessionId, this.#incarnation],
    );
    if (rowCount === 0) throw new Error(`a transcript of the session ${sessionId} exists already`);
    const recording = this.#writer.record(sessionId, onFailure);
    return {
      get written() {
        return recording.written;
      },
      get size() {
        return recording.size;
      },
      append: (lines, done) => recording.append(lines, done),
      finish: () => this.#finish(recording),
    };
  }

  async #finish(recording: RowRecording): Promise<TranscriptDigest> {
    const digest = await recording.finish();
    await this.#writer.forget(recording);
    // Rows that were committed after the failure are not part of the digest.
    if (recording.failed) this.#unsealed.set(recording.sessionId, digest.bytes);
    void this.pack();
    return digest;
  }

  async has(sessionId: string): Promise<boolean> {
    return isUlid(sessionId) && (await lengthOf(this.#pool, sessionId)) !== null;
  }

  async cast(sessionId: string): Promise<AsyncIterable<Uint8Array> | null> {
    const length = isUlid(sessionId) ? await lengthOf(this.#pool, sessionId) : null;
    return length === null ? null : contentOf(this.#pool, sessionId, 0, length);
  }

  async raw(sessionId: string): Promise<AsyncIterable<Uint8Array> | null> {
    const content = await this.cast(sessionId);
    return content === null ? null : shownBytes(content);
  }

  async part(sessionId: string, from: number, to: number): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of contentOf(this.#pool, sessionId, from, to)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  async repair(sessionId: string): Promise<void> {
    if (isUlid(sessionId) && !this.#writer.find(sessionId)) await this.#complete(sessionId);
  }

  async digest(sessionId: string): Promise<TranscriptDigest | null> {
    const content = await this.cast(sessionId);
    return content === null ? null : digestOf(content);
  }

  async remove(sessionId: string): Promise<void> {
    const { signal } = this.#closing;
    if (isUlid(sessionId)) await this.#inTurn((client) => removeTranscript(client, sessionId, signal));
  }

  ids(range: IdRange): Promise<string[]> {
    return transcriptIds(this.#pool, range);
  }

  /** Stores a complete transcript. @returns false if the session has a transcript */
  store(sessionId: string, content: AsyncIterable<Uint8Array>): Promise<boolean> {
    return this.#inTurn((client) => storeTranscript(client, sessionId, content));
  }

  /** Completes failed recordings, and compresses the complete transcripts. Resolves when none is left. */
  pack(): Promise<void> {
    this.#packsAgain = true;
    this.#packing ??= this.#packAll()
      .catch((error: unknown) => {
        if (this.#closing.signal.aborted) return;
        this.#log.warn({ err: error }, 'failed to complete or compress transcript; will retry later');
        if (this.#unsealed.size === 0) return;
        this.#cancelRetry ??= this.#clock.after(retryMs, () => {
          this.#cancelRetry = null;
          void this.pack();
        });
      })
      .finally(() => {
        this.#packing = null;
      });
    return this.#packing;
  }

  async #packAll(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#packsAgain && !signal.aborted) {
      this.#packsAgain = false;
      await this.#sealFailed();
      if (await this.#inTurn((client) => packNext(client, signal))) this.#packsAgain = true;
    }
  }

  async #sealFailed(): Promise<void> {
    for (const sessionId of this.#unsealed.keys()) await this.#seal(sessionId);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelRetry?.();
    await this.#writer.close();
    await this.#packing;
    await this.#sealFailed().catch((error: unknown) =>
      this.#log.warn({ err: error, transcripts: this.#unsealed.size }, 'failed to complete transcripts'),
    );
    await this.#pool.end();
  }

  async #complete(sessionId: string): Promise<void> {
    await this.#seal(sessionId);
    void this.pack();
  }

  async #seal(sessionId: string): Promise<void> {
    const bytes = this.#unsealed.get(sessionId);
    const only = bytes === undefined ? null : { writer: this.#incarnation, bytes };
    await this.#withClient((client) => inTransaction(client, () => sealTranscript(client, sessionId, only)));
    this.#unsealed.delete(sessionId);
  }

  /** Runs one background task at a time, so that connections are left for readers. */
  #inTurn<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    const result = this.#background.then(() => {
      this.#closing.signal.throwIfAborted();
      return this.#withClient(work);
    });
    this.#background = result.catch(() => undefined);
    return result;
  }

  async #withClient<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    // A connection that is lost between two queries emits an error. The next query then rejects with the same error.
    const ignore = () => undefined;
    client.on('error', ignore);
    let broken = true;
    try {
      const result = await work(client);
      broken = false;
      return result;
    } finally {
      client.off('error', ignore);
      // Discards the connection after an error, because it may be in an aborted transaction.
      client.release(broken);
    }
  }
}
