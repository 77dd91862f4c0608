import { parentPort, workerData } from 'node:worker_threads';
import type { MeasureName } from '@muster/protocol';
import type { Database as Connection, Statement } from 'better-sqlite3';
import { openSqliteFile } from '../sqlite/sqlite-connection.ts';
import { type Chunk, chunkAt, chunksBefore, chunksOf, tableOf, withChunk } from './sample-chunks.ts';

/**
 * The thread with the writing connection to the sample file. Writes each batch in one transaction. A power failure may
 * lose the most recent batches but does not damage the file.
 */

export interface SampleWriterOptions {
  readonly file: string;
  /** Length of a new chunk in seconds. */
  readonly chunkLength: number;
  /** The measures in schema order. Listed here, because importing them would load all schemas into this thread. */
  readonly measures: readonly MeasureName[];
}

export type ToSampleWriter =
  /** The time and the measures in schema order, row by row. NaN represents null. */
  | { readonly id: number; readonly kind: 'insert'; readonly nodes: readonly string[]; readonly values: Float64Array }
  | { readonly id: number; readonly kind: 'drop'; readonly before: number }
  | { readonly id: number; readonly kind: 'close' };

/** The result, with the chunks that exist after the request. */
export type FromSampleWriter = { readonly id: number; readonly chunks: readonly Chunk[] } & (
  | object
  | { readonly code: string | undefined; readonly message: string }
);

/** Version of the file layout. Releases that change the layout increment it. */
const layout = 1;

const port = parentPort;
if (!port) throw new Error('This file must run as a worker thread');
const options = workerData as SampleWriterOptions;

const db = opened();
if (db.pragma('user_version', { simple: true }) !== layout) db.pragma(`user_version = ${layout}`);

function opened(): Connection {
  const { file } = options;
  let found: number;
  let connection: Connection;
  try {
    connection = openSqliteFile(file);
    // Takes effect only in a new file, before the first write.
    connection.pragma('auto_vacuum = incremental');
    connection.pragma('journal_mode = wal');
    connection.pragma('synchronous = normal');
    connection.pragma('cache_size = -32000');
    connection.pragma('temp_store = memory');
    connection.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
    found = connection.pragma('user_version', { simple: true }) as number;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    // A file that is busy, inaccessible, or too large for the disk is intact and must not be moved.
    const remedy = /^SQLITE_(CORRUPT|NOTADB)/.test(code ?? '')
      ? '. It contains only samples: move the file, its -wal, and its -shm away, and Muster creates a new one.'
      : '';
    throw new Error(`${file} cannot be opened: ${message}${remedy}`);
  }
  if (found > layout)
    throw new Error(`A newer release of Muster wrote ${file}: start that release, or move the file away.`);
  return connection;
}

const begin = db.prepare('begin immediate');
const commit = db.prepare('commit');
const rollback = db.prepare('rollback');
const tables = db.prepare<[], string>(`select name from sqlite_schema where type = 'table'`).pluck();
let chunks: readonly Chunk[] = chunksOf(tables.all());
const inserts = new Map<Chunk, Statement<unknown[]>>();

const width = options.measures.length + 1;
const columns = options.measures
  .map((name) => `${name} ${name === 'cpu_usage' || name === 'load1' ? 'real' : 'integer'}`)
  .join(', ');
const marks = Array.from({ length: width + 1 }, () => '?').join(', ');

function create(chunk: Chunk): void {
  // Without a rowid, an agent's rows are adjacent, and queries read them together.
  db.exec(`create table ${tableOf(chunk)} (node_id text not null, collected_at integer not null, ${columns},
    primary key (node_id, collected_at)) strict, without rowid`);
  chunks = withChunk(chunks, chunk);
}

function insertInto(chunk: Chunk): Statement<unknown[]> {
  let insert = inserts.get(chunk);
  if (!insert) {
    if (!chunks.includes(chunk)) create(chunk);
    insert = db.prepare(`insert into ${tableOf(chunk)} values (${marks}) on conflict do nothing`);
    inserts.set(chunk, insert);
  }
  return insert;
}

function insertAll(nodes: readonly string[], values: Float64Array): void {
  const row = new Array<string | number | null>(width + 1);
  let chunk: Chunk = { start: 0, end: 0 };
  let insert: Statement<unknown[]> | null = null;
  for (let index = 0, at = 0; index < nodes.length; index++) {
    row[0] = nodes[index]!;
    for (let column = 1; column <= width; column++) {
      const value = values[at++]!;
      row[column] = Number.isNaN(value) ? null : value;
    }
    const time = row[1] as number;
    if (insert === null || time < chunk.start || time >= chunk.end) {
      chunk = chunkAt(chunks, time, options.chunkLength);
      insert = insertInto(chunk);
    }
    insert.run(row);
  }
}

function drop(before: number): void {
  const old = chunksBefore(chunks, before);
  for (const chunk of old) {
    inserts.delete(chunk);
    db.exec(`drop table ${tableOf(chunk)}`);
  }
  chunks = chunks.filter((chunk) => !old.includes(chunk));
}

/** Number of pages to free per event-loop turn. Freeing this many pages takes about as long as a commit. */
const pagesPerTurn = 2_000;
/** Maximum share of free pages in the file. New chunks reuse free pages. */
const maxFreeShare = 0.25;
const minFreedPages = 1_000;
let vacuuming = false;

/**
 * Shrinks the file if many pages are free, for example after the retention period was shortened or agents were removed.
 */
function vacuum(): void {
  if (!db.open) return;
  try {
    const free = db.pragma('freelist_count', { simple: true }) as number;
    const pages = db.pragma('page_count', { simple: true }) as number;
    vacuuming = free > minFreedPages && (free > pages * maxFreeShare || vacuuming);
    if (!vacuuming) return;
    db.pragma(`incremental_vacuum(${pagesPerTurn})`);
    // Files from earlier releases do not have the page map for incremental vacuuming, so their size does not change.
    vacuuming = (db.pragma('freelist_count', { simple: true }) as number) < free;
    // The file shrinks only at a checkpoint.
    if (vacuuming) db.pragma('wal_checkpoint(passive)');
  } catch {
    // The disk may be full or the file damaged. The next drop of a chunk retries.
    vacuuming = false;
  }
  if (vacuuming) setImmediate(vacuum);
}

function run(message: Exclude<ToSampleWriter, { kind: 'close' }>): FromSampleWriter {
  const before = chunks;
  try {
    begin.run();
    if (message.kind === 'insert') insertAll(message.nodes, message.values);
    else drop(message.before);
    commit.run();
  } catch (error) {
    if (db.inTransaction) rollback.run();
    // The rollback has dropped and restored tables, so their prepared statements are no longer valid.
    chunks = before;
    inserts.clear();
    return { id: message.id, chunks, code: (error as { code?: string }).code, message: (error as Error).message };
  }
  return { id: message.id, chunks };
}

port.on('message', (message: ToSampleWriter) => {
  if (message.kind !== 'close') {
    port.postMessage(run(message));
    if (message.kind === 'drop' && !vacuuming) vacuum();
    return;
  }
  vacuuming = false;
  try {
    // If the file has been moved, closing it does not checkpoint the write-ahead log, so the content of the log would
    // be lost.
    db.pragma('wal_checkpoint(truncate)');
  } catch {
    // The disk may be full. The log remains and is read when the file is reopened.
  }
  db.close();
  port.postMessage({ id: message.id, chunks } satisfies FromSampleWriter);
  port.close();
});
port.postMessage({ id: 0, chunks } satisfies FromSampleWriter);
