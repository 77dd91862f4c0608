import type { Client } from 'pg';
import type { Clock } from '../../../../lib/src/clock.ts';
import { postgresFailure } from '../postgres/postgres-failure.ts';
import { rowTypes } from '../postgres/postgres-row-types.ts';
import { connect, connectionSettings } from '../postgres/postgres-settings.ts';
import { type RecordedChunk, RowRecording } from './row-recording.ts';

export interface RowWriterParts {
  readonly url: string;
  /** ID of this process. Only the process that created a transcript may append to it. */
  readonly incarnation: string;
  readonly clock: Clock;
}

/** Flush interval in milliseconds. A crash of the server loses at most the output from one interval and one flush. */
const flushMs = 500;
/** A flush begins immediately if more than this many committed bytes are not durable. Bounds the memory used. */
const maxUnflushed = 8 * 1024 * 1024;
/** Approximate maximum number of bytes per insert, for all recordings and for one recording. */
const insertBytes = 4 * 1024 * 1024;
const recordingBytes = 1024 * 1024;
/** Milliseconds for which rows are resent while the server is unavailable. After this time, the recordings fail. */
const giveUpMs = 30_000;
const minPauseMs = 50;
const maxPauseMs = 1_000;
/** Maximum milliseconds to wait until the server closes a connection that this process ends. */
const endMs = 1_000;
/** Seconds after which the server cancels a statement. */
const statementTimeout = 10;
// Without this limit, a disconnected machine's transactions would hold locks for hours.
const server = { idle_in_transaction_session_timeout: '10s' };

/**
 * Stores the rows of all recordings through one connection, one statement at a time. Lines that arrive during a
 * statement share the next statement.
 *
 * A row is committed without waiting for the server's disk, so a crash of the server could lose the last rows. Twice a
 * second, a transaction that does wait makes all earlier commits durable. A connection ends when its server crashes, so
 * after each loss of the connection, all rows that are not known to be durable are stored again.
 */
export class RowWriter {
  readonly #parts: RowWriterParts;
  /** All recordings that are not finished. */
  readonly #recordings = new Map<string, RowRecording>();
  /** Recordings that may have lines to store. */
  readonly #pending = new Set<RowRecording>();
  /** Recordings with rows that are not known to be durable, and recordings that must be finished. */
  readonly #dirty = new Set<RowRecording>();
  /**
   * Recordings whose row another transaction has locked, until the next attempt, and the times of their first attempts.
   */
  readonly #locked = new Set<RowRecording>();
  readonly #lockedSince = new Map<RowRecording, number>();
  #cancelRetry: (() => void) | null = null;
  #connection: { client: Client; flushLevel: string } | null = null;
  #running: Promise<void> | null = null;
  #cancelTimer: (() => void) | null = null;
  #flushDue = false;
  /** Time of the first failure since the last success, on the monotonic clock; null after a success. */
  #failingSince: number | null = null;
  #pauseMs = minPauseMs;
  /** Ends the current pause between two attempts. */
  #resume: (() => void) | null = null;
  #closing = false;
  recorded = 0;
  flushes = 0;

  constructor(parts: RowWriterParts) {
    this.#parts = parts;
  }

  /** Starts a recording, whose row in `terminal_transcripts` must name this process as the writer. */
  record(sessionId: string, onFailure: (reason: Error) => void): RowRecording {
    const recording = new RowRecording(sessionId, (one) => this.#wants(one), onFailure);
    this.#recordings.set(sessionId, recording);
    return recording;
  }

  find(sessionId: string): RowRecording | undefined {
    return this.#recordings.get(sessionId);
  }

  /** Ends a finished recording. Closes the connection if it was the last recording. */
  async forget(recording: RowRecording): Promise<void> {
    this.#recordings.delete(recording.sessionId);
    this.#drop(recording);
    // Does not wait for other recordings, which may take hours.
    if (this.#recordings.size > 0) return;
    this.#resume?.();
    await this.#running;
    if (this.#recordings.size === 0) await this.#stop();
  }

  /** Closes the connection after the current statement. If the server is unavailable, the recordings fail. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#resume?.();
    await this.#running;
    await this.#stop();
  }

  async #stop(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    await this.#disconnect();
  }

  #wants(recording: RowRecording): void {
    this.#pending.add(recording);
    this.#run();
  }

  #run(): void {
    this.#running ??= this.#work().finally(() => {
      this.#running = null;
      if (this.#hasWork) this.#run();
    });
  }

  get #hasWork(): boolean {
    return this.#pending.size > 0 || this.#flushDue;
  }

  async #work(): Promise<void> {
    // Lines that are appended in the same turn share a statement.
    await null;
    while (this.#hasWork) {
      try {
        const { client, flushLevel } = await this.#connected();
        if (this.#flushDue) await this.#flush(client, flushLevel);
        else await this.#store(client);
        this.#failingSince = null;
        this.#pauseMs = minPauseMs;
      } catch (error) {
        await this.#recover(error as Error);
      }
    }
  }

  async #connected(): Promise<{ client: Client; flushLevel: string }> {
    if (this.#connection) return this.#connection;
    const { url } = this.#parts;
    const client = await connect({ ...connectionSettings({ url, statementTimeout, server }), types: rowTypes });
    try {
      const { rows } = await client.query<{ level: string }>(`select current_setting('synchronous_commit') as level`);
      await client.query('set synchronous_commit to off');
      const level = rows[0]?.level ?? 'on';
      this.#connection = { client, flushLevel: level === 'off' ? 'on' : level };
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    for (const recording of this.#recordings.values()) {
      recording.storeAgain();
      this.#pending.add(recording);
    }
    // A flush compares lengths, so the rows are stored again first.
    this.#flushDue = false;
    return this.#connection;
  }

  async #disconnect(): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    if (!connection) return;
    const { client } = connection;
    // An unreachable server does not close the connection.
    const cancel = this.#parts.clock.after(endMs, () => client.connection.stream.destroy());
    await client.end().catch(() => undefined);
    cancel();
  }

  /** Commits the next chunks of the pending recordings. */
  async #store(client: Client): Promise<void> {
    const batch: { recording: RowRecording; chunk: RecordedChunk }[] = [];
    const asked: RowRecording[] = [];
    let bytes = 0;
    for (const recording of this.#pending) {
      if (bytes >= insertBytes) break;
      asked.push(recording);
      if (this.#locked.has(recording)) continue;
      for (const chunk of recording.next(recordingBytes)) {
        batch.push({ recording, chunk });
        bytes += chunk.bytes.length;
      }
    }
    const rows = batch.filter(({ chunk }) => chunk.bytes.length > 0);
    const writable = rows.length === 0 ? null : await this.#insert(client, rows);
    // A later append adds the recording again, and so does `#after` if there are more chunks.
    for (const recording of asked) this.#pending.delete(recording);
    try {
      for (const { recording, chunk } of batch) {
        if (recording.over || this.#locked.has(recording)) continue;
        if (writable?.has(recording.sessionId) === false && chunk.bytes.length > 0)
          await this.#refused(client, recording);
        else this.recorded += recording.store(chunk);
      }
    } catch (error) {
      for (const recording of asked) this.#pending.add(recording);
      throw error;
    }
    for (const recording of asked) this.#after(recording);
    if (this.#unflushed > maxUnflushed) this.#flushDue = true;
  }

  /** @returns the sessions to which this process may append */
  async #insert(
    client: Client,
    rows: readonly { recording: RowRecording; chunk: RecordedChunk }[],
  ): Promise<ReadonlySet<string>> {
    // Sends all content as one value, because values in an array would be sent as hexadecimal text.
    const offsets: number[] = [];
    let offset = 1;
    for (const { chunk } of rows) {
      offsets.push(offset);
      offset += chunk.bytes.length;
    }
    const answer = await client.query<{ session_id: string }>({
      name: 'transcript_insert',
      text: `with given as (
          select * from unnest($1::text[], $2::bigint[], $3::int[], $4::int[]) as one(session_id, start, place, size)
        ), writable as (
          select session_id from terminal_transcripts
          where session_id = any($1::text[]) and writer = $6 for key share skip locked
        ), stored as (
          insert into terminal_chunks (session_id, start, size, packed, bytes)
          select session_id, start, size, 0, substring($5::bytea from place for size)
          from given where session_id in (select session_id from writable)
          on conflict do nothing
        ) select session_id from writable`,
      values: [
        rows.map(({ recording }) => recording.sessionId),
        rows.map(({ chunk }) => chunk.start),
        offsets,
        rows.map(({ chunk }) => chunk.bytes.length),
        Buffer.concat(rows.map(({ chunk }) => chunk.bytes)),
        this.#parts.incarnation,
      ],
    });
    return new Set(answer.rows.map(({ session_id }) => session_id));
  }

  /** Schedules the next insert or flush that a recording needs. */
  #after(recording: RowRecording): void {
    if (recording.over) {
      this.#drop(recording);
      return;
    }
    if (this.#locked.has(recording)) return;
    if (recording.next(1).length > 0) this.#pending.add(recording);
    if (recording.unflushed > 0 || recording.drained) this.#dirty.add(recording);
    if (recording.drained) this.#flushDue = true;
    if (this.#dirty.size > 0)
      this.#cancelTimer ??= this.#parts.clock.after(flushMs, () => {
        this.#cancelTimer = null;
        this.#flushDue = this.#dirty.size > 0;
        if (this.#flushDue) this.#run();
      });
  }

  get #unflushed(): number {
    let sum = 0;
    for (const { unflushed } of this.#dirty) sum += unflushed;
    return sum;
  }

  /** Makes all committed rows durable, and detects rows that were deleted. Completes the drained recordings. */
  async #flush(client: Client, level: string): Promise<void> {
    const dirty = [...this.#dirty]
      .filter(({ restoring }) => !restoring)
      .map((recording) => {
        const { written, drained } = recording;
        return { recording, written, drained };
      });
    await client.query(`begin; set local synchronous_commit to ${level}`);
    const answer = await client.query<{ session_id: string; stored: number }>({
      name: 'transcript_flush',
      text: `with held as materialized (
          select session_id from terminal_transcripts
          where session_id = any($1::text[]) and writer = $4 for no key update skip locked
        ) update terminal_transcripts as t set bytes = given.bytes, writer = given.writer
        from unnest($1::text[], $2::bigint[], $3::text[]) as given(session_id, bytes, writer)
        where t.session_id = given.session_id and t.session_id in (select session_id from held)
        returning t.session_id, coalesce((select c.start + c.size from terminal_chunks as c
          where c.session_id = t.session_id order by c.start desc limit 1), 0) as stored`,
      values: [
        dirty.map(({ recording }) => recording.sessionId),
        dirty.map(({ written }) => written),
        dirty.map(({ drained }) => (drained ? '' : this.#parts.incarnation)),
        this.#parts.incarnation,
      ],
    });
    await client.query('commit');
    this.#flushDue = false;
    this.flushes++;
    const stored = new Map(answer.rows.map((row) => [row.session_id, row.stored]));
    for (const { recording, written, drained } of dirty) {
      const length = stored.get(recording.sessionId);
      if (length === undefined)
        await this.#refused(client, recording).catch((error: unknown) => {
          // The other recordings need another flush.
          this.#flushDue = true;
          throw error;
        });
      this.#dirty.delete(recording);
      if (length === undefined) continue;
      this.#lockedSince.delete(recording);
      if (length < written) recording.fail(new Error('rows of the transcript were removed'));
      else {
        recording.flush(written);
        if (drained) recording.end();
        else this.#after(recording);
      }
    }
  }

  /**
   * Handles a recording that was skipped. Fails it if this process may not append to it, unless this process completed
   * it before a failure. Retries if another transaction has locked its row.
   */
  async #refused(client: Client, recording: RowRecording): Promise<void> {
    if (recording.over) return;
    const { rows } = await client.query<{ bytes: number; writer: string }>(
      'select bytes, writer from terminal_transcripts where session_id = $1',
      [recording.sessionId],
    );
    const [row] = rows;
    const now = this.#parts.clock.monotonic();
    const since = this.#lockedSince.get(recording) ?? now;
    if (row?.writer === this.#parts.incarnation && now - since < giveUpMs) {
      this.#lockedSince.set(recording, since);
      this.#locked.add(recording);
      this.#cancelRetry ??= this.#parts.clock.after(minPauseMs, () => this.#retryLocked());
      return;
    }
    if (recording.closesAt !== null && row?.writer === '' && row.bytes === recording.closesAt) {
      recording.end();
      this.#drop(recording);
    } else
      recording.fail(
        new Error(
          row?.writer === this.#parts.incarnation
            ? 'the row of the transcript was locked for too long'
            : row
              ? 'another process has taken over the transcript'
              : 'the rows of the transcript were removed',
        ),
      );
  }

  #retryLocked(): void {
    this.#cancelRetry = null;
    for (const recording of this.#locked) this.#pending.add(recording);
    this.#locked.clear();
    this.#run();
  }

  #drop(recording: RowRecording): void {
    this.#locked.delete(recording);
    this.#lockedSince.delete(recording);
    this.#pending.delete(recording);
    this.#dirty.delete(recording);
    if (this.#dirty.size === 0) this.#flushDue = false;
  }

  /** Waits before the next attempt, or fails the recordings. */
  async #recover(error: Error): Promise<void> {
    const { clock } = this.#parts;
    await this.#disconnect();
    const { kind } = postgresFailure(error);
    this.#failingSince ??= clock.monotonic();
    const passing = kind === 'gone' || kind === 'unavailable' || kind === 'again';
    if (!passing || this.#closing || clock.monotonic() - this.#failingSince >= giveUpMs) {
      this.#flushDue = false;
      this.#failingSince = null;
      for (const recording of [...this.#pending, ...this.#dirty, ...this.#locked]) {
        this.#drop(recording);
        recording.fail(error);
      }
      return;
    }
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(maxPauseMs, pauseMs * 2);
    const pause = Promise.withResolvers<void>();
    this.#resume = pause.resolve;
    const cancel = clock.after(pauseMs, pause.resolve);
    await pause.promise;
    cancel();
  }
}
