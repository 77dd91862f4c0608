import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { ClientBase, Pool } from 'pg';
import type { IdRange } from './transcripts.ts';

/**
 * Rows of transcripts in PostgreSQL. `terminal_transcripts` has a row for each transcript: `writer` is the incarnation
 * of the process that may append to it, or empty, and `bytes` its durable length. `terminal_chunks` has the content:
 * `size` bytes that begin at the offset `start`, gzip-compressed if `packed` is 1.
 *
 * These tables are never used in serializable transactions, so recording neither conflicts with them nor waits for them.
 */

/** A connection or pool whose row types include 64-bit integers as numbers. */
export type Queryable = Pick<ClientBase | Pool, 'query'>;

interface ChunkRow {
  readonly start: number;
  readonly size: number;
  readonly packed: number;
  readonly bytes: Buffer;
}

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** Maximum number of rows, and approximate maximum number of content bytes, per query. */
const rowsAtOnce = 2000;
const bytesAtOnce = 1024 * 1024;
/** Maximum number of rows per deletion. A packed row has up to 1 MiB and one chunk. */
const deletedAtOnce = 256;

/**
 * Reads chunks, starting with the chunk that contains the offset `from`. If the transcript is packed between two calls,
 * the next call continues at the same offset.
 */
async function chunksAt(on: Queryable, sessionId: string, from: number, to: number): Promise<ChunkRow[]> {
  const { rows } = await on.query<ChunkRow>({
    name: 'transcript_chunks',
    text: `select start, size, packed, bytes from (
        select *, sum(size) over (order by start) - size as before from (
          select start, size, packed, bytes from terminal_chunks
          where session_id = $1 and start < $3 and start >= coalesce(
            (select max(start) from terminal_chunks where session_id = $1 and start <= $2), $2)
            and start + size > $2
          order by start limit ${rowsAtOnce}) as found) as counted
      where before < ${bytesAtOnce} order by start`,
    values: [sessionId, from, to],
  });
  return rows;
}

const contentOfChunk = async ({ packed, bytes, size }: ChunkRow): Promise<Buffer> =>
  packed === 0 ? bytes : await unpack(bytes, { maxOutputLength: Math.max(1, size) });

/** Iterates over bytes `from` to `to`, or fewer at the end. Skips bytes that were removed from the table. */
export async function* contentOf(on: Queryable, sessionId: string, from: number, to: number): AsyncGenerator<Buffer> {
  for (let at = from; at < to; ) {
    const before = at;
    for (const chunk of await chunksAt(on, sessionId, at, to)) {
      const end = Math.min(to, chunk.start + chunk.size);
      if (end <= at) continue;
      const first = Math.max(at, chunk.start);
      yield (await contentOfChunk(chunk)).subarray(first - chunk.start, end - chunk.start);
      at = end;
    }
    if (at === before) return;
  }
}

/** Returns the number of stored bytes; null if there is no transcript. */
export async function lengthOf(on: Queryable, sessionId: string): Promise<number | null> {
  const { rows } = await on.query<{ length: number }>({
    name: 'transcript_length',
    text: `select coalesce((select start + size from terminal_chunks where session_id = $1 order by start desc limit 1), 0)
        as length from terminal_transcripts where session_id = $1`,
    values: [sessionId],
  });
  return rows[0]?.length ?? null;
}

/** Returns the sessions that have a transcript, in order. */
export async function transcriptIds(on: Queryable, { after, below, limit }: IdRange): Promise<string[]> {
  const { rows } = await on.query<{ session_id: string }>(
    `select session_id from terminal_transcripts where session_id > $1 and session_id < $2
      order by session_id limit $3`,
    [after, below, limit],
  );
  return rows.map(({ session_id }) => session_id);
}

export interface StoredTranscript {
  readonly id: string;
  readonly size: number;
  readonly content: AsyncIterable<Buffer>;
}

/** Iterates over all transcripts, in the order of their session IDs. Requires a transaction with a fixed snapshot. */
export async function* allTranscripts(on: Queryable): AsyncGenerator<StoredTranscript> {
  const there = await on.query<{ there: boolean }>(`select to_regclass('terminal_chunks') is not null as there`);
  // A database with the schema of an earlier release may have no table of transcripts.
  if (!there.rows[0]?.there) return;
  const limit = 500;
  for (let after = ''; ; ) {
    const ids = await transcriptIds(on, { after, below: '~', limit });
    for (const id of ids) {
      const { rows } = await on.query<{ size: number; length: number }>(
        `select coalesce(sum(size), 0)::bigint as size, coalesce(max(start + size), 0) as length
          from terminal_chunks where session_id = $1`,
        [id],
      );
      const { size, length } = rows[0]!;
      yield { id, size, content: contentOf(on, id, 0, length) };
    }
    if (ids.length < limit) return;
    after = ids.at(-1) as string;
  }
}

/** Runs `work` in a transaction. */
export async function inTransaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/**
 * Takes a transcript from its writer, which can then no longer append to it. Requires an open transaction.
 * @param only the expected writer; the transcript is unchanged if it has another writer. All content after the first
 *   `bytes` bytes is removed
 * @returns false if there is no such transcript
 */
export async function sealTranscript(
  client: ClientBase,
  sessionId: string,
  only: { readonly writer: string; readonly bytes: number } | null = null,
): Promise<boolean> {
  // Waits for rows that are being appended.
  const held = await client.query<{ writer: string }>(
    'select writer from terminal_transcripts where session_id = $1 for update',
    [sessionId],
  );
  const [row] = held.rows;
  if (!row || (only && row.writer !== only.writer)) return false;
  if (only) {
    const values = [sessionId, only.bytes];
    await client.query('delete from terminal_chunks where session_id = $1 and start >= $2', values);
    // No row is compressed yet, because only complete transcripts are compressed.
    await client.query(
      `update terminal_chunks set size = $2 - start, bytes = substring(bytes from 1 for ($2 - start)::int)
        where session_id = $1 and start + size > $2 and packed = 0`,
      values,
    );
  }
  const bytes = await lengthOf(client, sessionId);
  await client.query(`update terminal_transcripts set writer = '', bytes = $2 where session_id = $1`, [
    sessionId,
    bytes,
  ]);
  return true;
}

/**
 * Deletes a transcript in several transactions, so that none of them is long. After an interruption, the deletion can
 * be repeated.
 * @param signal aborts the deletion between two transactions
 */
export async function removeTranscript(client: ClientBase, sessionId: string, signal: AbortSignal): Promise<void> {
  const found = await inTransaction(client, async () => {
    const sealed = await sealTranscript(client, sessionId);
    // Otherwise, compressing could insert rows after the rows were deleted.
    await client.query('update terminal_transcripts set packed = 1 where session_id = $1', [sessionId]);
    return sealed;
  });
  if (!found) return;
  // Continues after the last deleted row, because an index keeps entries of deleted rows until a vacuum.
  for (let after = -1, more = true; more; ) {
    signal.throwIfAborted();
    const { rows } = await client.query<{ start: number }>(
      `delete from terminal_chunks where session_id = $1 and start in
        (select start from terminal_chunks where session_id = $1 and start > $2 order by start limit ${deletedAtOnce})
        returning start`,
      [sessionId, after],
    );
    for (const { start } of rows) after = Math.max(after, start);
    more = rows.length === deletedAtOnce;
  }
  await client.query('delete from terminal_transcripts where session_id = $1', [sessionId]);
}

/**
 * Compresses the rows of one complete transcript into rows with about 1 MiB of content each. Other processes may
 * compress transcripts at the same time.
 * @param signal aborts the compression without a change
 * @returns false if no transcript is left to compress
 */
export const packNext = (client: ClientBase, signal: AbortSignal): Promise<boolean> =>
  inTransaction(client, async () => {
    const { rows } = await client.query<{ session_id: string; bytes: number }>(
      `select session_id, bytes from terminal_transcripts where packed = 0 and writer = ''
        order by session_id limit 1 for update skip locked`,
    );
    const [next] = rows;
    if (!next) return false;
    const block = new PackedBlocks(client, next.session_id);
    for (let at = 0; at < next.bytes; ) {
      signal.throwIfAborted();
      const chunks = await chunksAt(client, next.session_id, at, next.bytes);
      const last = chunks.at(-1);
      if (!last || last.start + last.size <= at) break;
      // Excludes a chunk before bytes that were removed from the table.
      for (const chunk of chunks) if (chunk.start >= at) await block.take(chunk);
      at = last.start + last.size;
    }
    await block.end();
    await client.query('update terminal_transcripts set packed = 1 where session_id = $1', [next.session_id]);
    return true;
  });

/** Stores a new, complete transcript durably. @returns false if the session has a transcript */
export const storeTranscript = (
  client: ClientBase,
  sessionId: string,
  content: AsyncIterable<Uint8Array>,
): Promise<boolean> =>
  inTransaction(client, async () => {
    const created = await client.query(
      `insert into terminal_transcripts (session_id, writer, bytes, packed) values ($1, '', 0, 1) on conflict do nothing`,
      [sessionId],
    );
    if (created.rowCount === 0) return false;
    // The caller deletes its copy, so the commit waits for the server's disk even if the settings turn that off.
    await client.query(
      `select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'`,
    );
    const block = new PackedBlocks(client, sessionId);
    let start = 0;
    for await (const piece of content) {
      // Copies the bytes, because a reader may reuse its memory.
      await block.take({ start, size: piece.length, packed: 0, bytes: Buffer.from(piece) });
      start += piece.length;
    }
    await block.end();
    await client.query('update terminal_transcripts set bytes = $2 where session_id = $1', [sessionId, start]);
    return true;
  });

/** Replaces adjacent chunks with compressed chunks. */
class PackedBlocks {
  readonly #client: ClientBase;
  readonly #sessionId: string;
  #start = 0;
  #end = 0;
  #pieces: Buffer[] = [];

  constructor(client: ClientBase, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  async take(chunk: ChunkRow): Promise<void> {
    if (chunk.start !== this.#end || this.#end - this.#start >= bytesAtOnce) await this.end();
    if (this.#pieces.length === 0) this.#start = chunk.start;
    this.#pieces.push(await contentOfChunk(chunk));
    this.#end = chunk.start + chunk.size;
  }

  async end(): Promise<void> {
    if (this.#pieces.length === 0) return;
    const size = this.#end - this.#start;
    const bytes = await pack(Buffer.concat(this.#pieces));
    this.#pieces = [];
    await this.#client.query('delete from terminal_chunks where session_id = $1 and start >= $2 and start < $3', [
      this.#sessionId,
      this.#start,
      this.#end,
    ]);
    await this.#client.query(
      'insert into terminal_chunks (session_id, start, size, packed, bytes) values ($1, $2, $3, 1, $4)',
      [this.#sessionId, this.#start, size, bytes],
    );
  }
}
