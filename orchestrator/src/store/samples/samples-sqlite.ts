import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { MusterError, measureNames, type Sample } from '@muster/protocol';
import type { Database as Connection, Statement } from 'better-sqlite3';
import { openSqliteReader } from '../sqlite/sqlite-connection.ts';
import { sqliteFailure } from '../sqlite/sqlite-failure.ts';
import { type SampleBatch, SampleBatches } from './sample-batches.ts';
import { type Chunk, chunkLength, chunksBefore, tableOf } from './sample-chunks.ts';
import {
  type BucketRow,
  bucketColumns,
  mergeBuckets,
  type SampleStats,
  type SampleStore,
  sampleOf,
} from './samples.ts';
import type { FromSampleWriter, SampleWriterOptions, ToSampleWriter } from './samples-sqlite-writer.ts';

export interface SqliteSamplesOptions {
  /** The sample file. Its directory must exist. */
  readonly file: string;
  readonly retentionSecs: number;
  /** Called when the writer has failed. Until the store is closed, samples can be read but not stored. */
  readonly onFatal: (reason: Error) => void;
}

type Row = Record<keyof Sample, number | null>;
type LatestRow = Row & { node_id: string };

/** Maximum number of agents to look up per event-loop turn. */
const agentsPerTurn = 500;
/** Maximum number of rows to read per event-loop turn. */
const rowsPerTurn = 2000;
/** Maximum time range to average per event-loop turn, in seconds. */
const secsPerTurn = 2 * 86_400;

/** Columns of a bucket. The latest value of a counter is the maximum of the values prefixed with a zero-padded time. */
const columns = bucketColumns(
  (column) => `cast(substr(max(printf('%015d', collected_at) || ${column}), 16) as integer)`,
);

/** Opens or creates the sample file, and starts its writer thread. */
export async function openSqliteSamples(options: SqliteSamplesOptions): Promise<SampleStore> {
  const writerOptions: SampleWriterOptions = {
    file: options.file,
    chunkLength: chunkLength(options.retentionSecs),
    measures: measureNames,
  };
  const worker = new Worker(new URL('./samples-sqlite-writer.ts', import.meta.url), {
    workerData: writerOptions,
    name: 'samples-writer',
  });
  const { chunks } = await new Promise<{ chunks: readonly Chunk[] }>((resolve, reject) => {
    worker.once('message', (message: FromSampleWriter) => {
      worker.off('error', reject);
      resolve(message);
    });
    worker.once('error', reject);
  });
  try {
    return new SqliteSamples(openSqliteReader(options.file), worker, chunks, options.onFatal);
  } catch (error) {
    await worker.terminate();
    throw error;
  }
}

class SqliteSamples implements SampleStore {
  readonly #reader: Connection;
  readonly #worker: Worker;
  readonly #batches: SampleBatches;
  /** The committed chunks, in chronological order. */
  #chunks: readonly Chunk[];
  /** Prepared statements by table and query. */
  readonly #prepared = new Map<string, Statement<unknown[]>>();
  readonly #waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  #lastId = 0;
  #closing = false;
  #lost: Error | null = null;

  constructor(reader: Connection, worker: Worker, chunks: readonly Chunk[], onFatal: (reason: Error) => void) {
    this.#reader = reader;
    this.#worker = worker;
    this.#chunks = chunks;
    this.#batches = new SampleBatches((batch) => this.#insert(batch));
    const lose = (reason: Error) => {
      if (this.#closing || this.#lost) return;
      this.#lost = reason;
      for (const { reject } of this.#waiting.values()) reject(reason);
      this.#waiting.clear();
      onFatal(reason);
    };
    worker.on('message', (message: FromSampleWriter) => this.#hear(message));
    worker.on('error', lose);
    worker.on('exit', (code) => lose(new Error(`The sample writer ended with code ${code}`)));
  }

  add(nodeId: string, samples: readonly Sample[]): Promise<void> {
    return this.#batches.add(nodeId, samples);
  }

  stats(): SampleStats {
    return this.#batches.stats;
  }

  #insert({ nodes, samples }: SampleBatch): Promise<void> {
    const values = new Float64Array(samples.length * (measureNames.length + 1));
    let at = 0;
    for (const sample of samples) {
      values[at++] = sample.collected_at;
      for (const name of measureNames) values[at++] = sample[name] ?? Number.NaN;
    }
    return this.#ask((id) => ({ id, kind: 'insert', nodes, values }), [values.buffer]);
  }

  #ask(message: (id: number) => ToSampleWriter, transfer: ArrayBuffer[] = []): Promise<void> {
    if (this.#lost) return Promise.reject(this.#lost);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage(message(id), transfer);
    });
  }

  #hear(message: FromSampleWriter): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    this.#chunks = message.chunks;
    if ('message' in message) waiting?.reject(errorOf(message));
    else waiting?.resolve();
  }

  async since(nodeId: string, since: number, limit: number): Promise<Sample[]> {
    const found: Sample[] = [];
    for (const chunk of this.#newestFirst(since))
      for (let before = chunk.end; found.length < limit; ) {
        const count = Math.min(rowsPerTurn, limit - found.length);
        const rows = this.#read(
          chunk,
          'since',
          (table) => `select * from ${table} where node_id = ? and collected_at >= ? and collected_at < ?
            order by collected_at desc limit ?`,
          [nodeId, since, before, count],
        ) as Row[];
        for (const row of rows) found.push(sampleOf(row));
        await nextTurn();
        if (rows.length < count || !this.#has(chunk)) break;
        before = rows.at(-1)!.collected_at!;
      }
    return found.reverse();
  }

  async averages(nodeId: string, since: number, step: number, limit: number): Promise<Sample[]> {
    if (limit === 0) return [];
    const parts: BucketRow[][] = [];
    const buckets = new Set<number>();
    for (const chunk of this.#newestFirst(since))
      for (let before = chunk.end; before > Math.max(chunk.start, since); before -= secsPerTurn) {
        // The oldest bucket may be incomplete, because the preceding chunk may contain its first part.
        if (buckets.size > limit || !this.#has(chunk)) break;
        const rows = this.#read(
          chunk,
          'averages',
          // The driver binds numbers as floating point, so the query casts this number to an integer.
          (table) => `select collected_at - collected_at % cast(? as integer) as bucket, ${columns}
          from ${table} where node_id = ? and collected_at >= ? and collected_at < ? group by bucket order by bucket`,
          [step, nodeId, Math.max(since, before - secsPerTurn), before],
        ) as BucketRow[];
        parts.push(rows);
        for (const { bucket } of rows) buckets.add(bucket);
        await nextTurn();
      }
    return mergeBuckets(parts.reverse().flat()).slice(-limit);
  }

  async latest(nodeIds: readonly string[], since: number): Promise<Map<string, Sample>> {
    const found = new Map<string, Sample>();
    for (let start = 0; start < nodeIds.length; start += agentsPerTurn) {
      let missing = nodeIds.slice(start, start + agentsPerTurn);
      // Most agents have a sample in the newest chunk. Looks up only the remaining agents in older chunks.
      for (const chunk of this.#newestFirst(since)) {
        const rows = this.#read(
          chunk,
          'latest',
          (table) => `select s.* from json_each(?) as wanted cross join ${table} as s
            where s.node_id = wanted.value and s.collected_at >= ?
            and s.collected_at = (select max(collected_at) from ${table} where node_id = wanted.value)`,
          [JSON.stringify(missing), since],
        ) as LatestRow[];
        for (const row of rows) found.set(row.node_id, sampleOf(row));
        await nextTurn();
        if (rows.length === missing.length) break;
        missing = missing.filter((nodeId) => !found.has(nodeId));
      }
    }
    return found;
  }

  async dropBefore(time: number): Promise<number> {
    const old = chunksBefore(this.#chunks, time);
    if (old.length === 0) return 0;
    // Stops reads from the old chunks before the chunks are dropped.
    this.#chunks = this.#chunks.filter((chunk) => !old.includes(chunk));
    for (const key of this.#prepared.keys())
      if (old.some((chunk) => key.startsWith(`${tableOf(chunk)} `))) this.#prepared.delete(key);
    await this.#ask((id) => ({ id, kind: 'drop', before: time }));
    return old.length;
  }

  /**
   * Iterates over the chunks that may have samples since a time. Uses a copy, because chunks may change between reads.
   */
  *#newestFirst(since: number): Generator<Chunk> {
    for (const chunk of [...this.#chunks].reverse()) if (chunk.end > since && this.#has(chunk)) yield chunk;
  }

  #has(chunk: Chunk): boolean {
    return this.#chunks.some(({ start }) => start === chunk.start);
  }

  #read(chunk: Chunk, kind: string, sql: (table: string) => string, values: unknown[]): unknown[] {
    if (this.#closing) throw new MusterError('draining', 'The sample store is being closed');
    const table = tableOf(chunk);
    const key = `${table} ${kind}`;
    try {
      let statement = this.#prepared.get(key);
      if (!statement) {
        statement = this.#reader.prepare<unknown[]>(sql(table));
        this.#prepared.set(key, statement);
      }
      return statement.all(...values);
    } catch (error) {
      if (sqliteFailure(error).kind === 'bug') throw error;
      throw new MusterError('storage_unavailable', `Samples could not be read: ${(error as Error).message}`);
    }
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    await this.#batches.close();
    this.#closing = true;
    this.#prepared.clear();
    this.#reader.close();
    if (!this.#lost) await this.#ask((id) => ({ id, kind: 'close' }));
    await this.#worker.terminate();
  }
}

function errorOf({ code, message }: { code: string | undefined; message: string }): Error {
  const { kind } = sqliteFailure({ code });
  if (kind === 'full') return new MusterError('storage_full', 'No space left for samples; none were stored');
  if (kind === 'bug' || kind === 'constraint') return new Error(`Samples could not be written: ${message}`);
  return new MusterError('storage_unavailable', `The sample file refused the write: ${message}`);
}
