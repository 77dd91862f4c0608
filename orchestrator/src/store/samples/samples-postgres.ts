import { fractionalMeasures, MusterError, measureNames, type Sample } from '@muster/protocol';
import { Pool, types } from 'pg';
import { errorMessage } from '../../../../lib/src/error-message.ts';
import { postgresFailure } from '../postgres/postgres-failure.ts';
import { connectionSettings } from '../postgres/postgres-settings.ts';
import { type SampleBatch, SampleBatches } from './sample-batches.ts';
import { type Chunk, chunkAt, chunkLength, chunksBefore, chunksOf, tableOf, withChunk } from './sample-chunks.ts';
import {
  type BucketRow,
  bucketColumns,
  mergeBuckets,
  type SampleStats,
  type SampleStore,
  sampleOf,
} from './samples.ts';

export interface PostgresSamplesOptions {
  readonly url: string;
  /** Seconds after which the server cancels a statement; no limit by default. */
  readonly statementTimeout?: number;
  readonly retentionSecs: number;
  /** Called when an idle connection has been lost. The pool opens a new connection when needed. */
  readonly onConnectionError?: (error: Error) => void;
}

type Row = Record<keyof Sample, number | null>;

const columns = ['node_id', 'collected_at', ...measureNames];
const arrays = columns.map((name, index) => {
  const type = name === 'node_id' ? 'text' : fractionalMeasures.has(name as 'load1') ? 'double precision' : 'bigint';
  return `$${index + 1}::${type}[]`;
});
const insert = `insert into samples (${columns.join(', ')}) select * from unnest(${arrays.join(', ')})
  on conflict do nothing`;

const lastColumns = bucketColumns(
  (column) => `(array_agg(${column} order by collected_at desc) filter (where ${column} is not null))[1]`,
);

/** Parses 64-bit integers as numbers, which can represent all values in these tables exactly. */
const rowTypes = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format as 'text'),
};

/** Errors that occur if another process has created or dropped partitions. */
const misplaced: ReadonlySet<string | undefined> = new Set([
  '23514', // the row's partition was dropped
  '42P17', // the new partition overlaps another partition
  '42P07', // the table already exists
  '23505', // two processes created the table at the same time
  '42P01', // the table was dropped
]);

async function readChunks(pool: Pool): Promise<Chunk[]> {
  const { rows } = await pool.query<{ relname: string }>(
    `select relname from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = 'samples'::regclass`,
  );
  return chunksOf(rows.map(({ relname }) => relname));
}

/**
 * Opens the sample tables in a migrated database. A previous holder of the database lock may create and drop partitions
 * at the same time.
 */
export async function openPostgresSamples(options: PostgresSamplesOptions): Promise<SampleStore> {
  const { url, statementTimeout } = options;
  const pool = new Pool({ ...connectionSettings({ url, statementTimeout }), max: 3, types: rowTypes });
  pool.on('error', (error) => options.onConnectionError?.(error));
  try {
    return new PostgresSamples(pool, await readChunks(pool), chunkLength(options.retentionSecs));
  } catch (error) {
    await pool.end();
    throw error;
  }
}

class PostgresSamples implements SampleStore {
  readonly #pool: Pool;
  readonly #batches: SampleBatches;
  readonly #length: number;
  #chunks: readonly Chunk[];
  #closing: Promise<void> | null = null;

  constructor(pool: Pool, chunks: readonly Chunk[], length: number) {
    this.#pool = pool;
    this.#chunks = chunks;
    this.#length = length;
    this.#batches = new SampleBatches((batch) => this.#insert(batch));
  }

  add(nodeId: string, samples: readonly Sample[]): Promise<void> {
    return this.#batches.add(nodeId, samples);
  }

  stats(): SampleStats {
    return this.#batches.stats;
  }

  async #insert(batch: SampleBatch): Promise<void> {
    try {
      try {
        await this.#write(batch);
      } catch (error) {
        if (!misplaced.has((error as { code?: string }).code)) throw error;
        this.#chunks = await readChunks(this.#pool);
        await this.#write(batch);
      }
    } catch (error) {
      throw errorOf(error, 'written');
    }
  }

  async #write({ nodes, samples }: SampleBatch): Promise<void> {
    let chunks = this.#chunks;
    const fresh: Chunk[] = [];
    for (const { collected_at } of samples) {
      const chunk = chunkAt(chunks, collected_at, this.#length);
      if (chunks.includes(chunk)) continue;
      fresh.push(chunk);
      chunks = withChunk(chunks, chunk);
    }
    // Creates partitions in a separate transaction, so that they are locked only briefly. If the insert fails, an empty
    // partition does no harm.
    for (const chunk of fresh)
      await this.#pool.query(
        `create table if not exists ${tableOf(chunk)} partition of samples
           for values from (${chunk.start}) to (${chunk.end})`,
      );
    this.#chunks = chunks;
    await this.#pool.query({
      name: 'samples_insert',
      text: insert,
      values: [
        nodes,
        samples.map((sample) => sample.collected_at),
        ...measureNames.map((name) => samples.map((sample) => sample[name])),
      ],
    });
  }

  async since(nodeId: string, since: number, limit: number): Promise<Sample[]> {
    const rows = await this.#read<Row>(
      'samples_since',
      'select * from samples where node_id = $1 and collected_at >= $2 order by collected_at desc limit $3',
      [nodeId, since, limit],
    );
    return rows.reverse().map(sampleOf);
  }

  async averages(nodeId: string, since: number, step: number, limit: number): Promise<Sample[]> {
    const rows = await this.#read<BucketRow>(
      'samples_averages',
      `select collected_at - collected_at % $3::bigint as bucket, ${lastColumns}
       from samples where node_id = $1 and collected_at >= $2 group by 1 order by 1 desc limit $4`,
      [nodeId, since, step, limit],
    );
    return mergeBuckets(rows.reverse());
  }

  async latest(nodeIds: readonly string[], since: number): Promise<Map<string, Sample>> {
    const rows = await this.#read<Row & { node_id: string }>(
      'samples_latest',
      // Reads partitions in chronological order, so that each lookup stops at its first row.
      `select newest.* from unnest($1::text[]) as wanted(node_id) cross join lateral (
         select * from samples where samples.node_id = wanted.node_id and samples.collected_at >= $2
         order by samples.collected_at desc limit 1) as newest`,
      [nodeIds, since],
    );
    return new Map(rows.map((row) => [row.node_id, sampleOf(row)]));
  }

  async dropBefore(time: number): Promise<number> {
    const old = chunksBefore(this.#chunks, time);
    for (const chunk of old) {
      try {
        await this.#pool.query(`drop table if exists ${tableOf(chunk)}`);
      } catch (error) {
        throw errorOf(error, 'dropped');
      }
      this.#chunks = this.#chunks.filter((other) => other !== chunk);
    }
    return old.length;
  }

  async #read<R extends object>(name: string, text: string, values: unknown[]): Promise<R[]> {
    if (this.#closing) throw new MusterError('draining', 'The sample store is being closed');
    try {
      return (await this.#pool.query<R>({ name, text, values })).rows;
    } catch (error) {
      throw errorOf(error, 'read');
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#batches.close().then(() => this.#pool.end());
    return this.#closing;
  }
}

function errorOf(error: unknown, verb: string): Error {
  const { kind } = postgresFailure(error);
  const message = errorMessage(error);
  if (kind === 'full') return new MusterError('storage_full', 'No space left for samples; none were stored');
  if (kind === 'bug' || kind === 'constraint')
    return new Error(`Samples could not be ${verb}: ${message}`, { cause: error });
  return new MusterError('storage_unavailable', `Samples could not be ${verb}: ${message}`);
}
