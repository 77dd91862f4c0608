import { parentPort, workerData } from 'node:worker_threads';
import { measureNames } from '@muster/protocol';
import type { Database as Connection, Statement } from 'better-sqlite3';
import { openSqliteFile } from '../sqlite/sqlite-connection.ts';
import { type Chunk, chunkAt, chunksBefore, chunksOf, tableOf, withChunk } from './sample-chunks.ts';

/**
 * The thread that owns the writing connection to the file of samples. One transaction a batch; a power cut may lose the
 * last of them, which the agents' next samples make up for, and never the file.
 */

export interface SampleWriterOptions {
  readonly file: string;
  /** Seconds of a new chunk. */
  readonly chunkLength: number;
}

export type ToSampleWriter =
  /** Row by row: the time, then the measures in the order of their names; NaN for null. */
  | { readonly id: number; readonly kind: 'insert'; readonly nodes: readonly string[]; readonly values: Float64Array }
  | { readonly id: number; readonly kind: 'drop'; readonly before: number }
  | { readonly id: number; readonly kind: 'close' };

/** Which chunks there are after it. */
export type FromSampleWriter = { readonly id: number; readonly chunks: readonly Chunk[] } & (
  | object
  | { readonly code: string | undefined; readonly message: string }
);

/** Of the file's layout; a larger one was written by a newer release. */
const layout = 1;

const port = parentPort;
if (!port) throw new Error('This file runs as a worker thread');
const options = workerData as SampleWriterOptions;

const db = opened();
if (db.pragma('user_version', { simple: true }) !== layout) db.pragma(`user_version = ${layout}`);

function opened(): Connection {
  const { file } = options;
  let found: number;
  let connection: Connection;
  try {
    connection = openSqliteFile(file);
    // Holds for a new file only, and has to be said before anything is written to it.
    connection.pragma('auto_vacuum = incremental');
    connection.pragma('journal_mode = wal');
    connection.pragma('synchronous = normal');
    connection.pragma('cache_size = -32000');
    connection.pragma('temp_store = memory');
    connection.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
    found = connection.pragma('user_version', { simple: true }) as number;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    // Not of one that is merely busy, not ours to open, or on a full disk: that is as good as before once it can be opened.
    const remedy = /^SQLITE_(CORRUPT|NOTADB)/.test(code ?? '')
      ? '. It holds nothing but samples: with it, its -wal and its -shm moved out of the way a new one is begun.'
      : '';
    throw new Error(`${file} cannot be opened: ${message}${remedy}`);
  }
  if (found > layout)
    throw new Error(`${file} was written by a newer Muster: start that one, or move the file out of the way.`);
  return connection;
}

const begin = db.prepare('begin immediate');
const commit = db.prepare('commit');
const rollback = db.prepare('rollback');
const tables = db.prepare<[], string>(`select name from sqlite_schema where type = 'table'`).pluck();
let chunks: readonly Chunk[] = chunksOf(tables.all());
const inserts = new Map<Chunk, Statement<unknown[]>>();

const width = measureNames.length + 1;
const columns = measureNames
  .map((name) => `${name} ${name === 'cpu_usage' || name === 'load1' ? 'real' : 'integer'}`)
  .join(', ');
const marks = Array.from({ length: width + 1 }, () => '?').join(', ');

function create(chunk: Chunk): void {
  // Rows of one agent lie together: that is how they are read.
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

/** Pages given back in one turn: samples that come meanwhile wait no longer for it than for a commit. */
const pagesOfTurn = 2_000;
/** What is free is used again by the next chunks, so that it is not moved about each hour: only more than that goes. */
const mostFree = 0.25;
const leastGivenBack = 1_000;
let givingBack = false;

/** Gives room back to the disk after much was dropped: samples are kept shorter than before, or there are fewer agents. */
function giveBack(): void {
  if (!db.open) return;
  try {
    const free = db.pragma('freelist_count', { simple: true }) as number;
    const pages = db.pragma('page_count', { simple: true }) as number;
    givingBack = free > leastGivenBack && (free > pages * mostFree || givingBack);
    if (!givingBack) return;
    db.pragma(`incremental_vacuum(${pagesOfTurn})`);
    // A file of before this was done has no map of what lies where, and stays as large as it is.
    givingBack = (db.pragma('freelist_count', { simple: true }) as number) < free;
    // What is folded in is what makes the file shorter.
    if (givingBack) db.pragma('wal_checkpoint(passive)');
  } catch {
    // A full disk, say, or a file that is damaged: at the next drop it is tried again.
    givingBack = false;
  }
  if (givingBack) setImmediate(giveBack);
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
    // Tables that were made or dropped are as they were; statements are prepared anew.
    chunks = before;
    inserts.clear();
    return { id: message.id, chunks, code: (error as { code?: string }).code, message: (error as Error).message };
  }
  return { id: message.id, chunks };
}

port.on('message', (message: ToSampleWriter) => {
  if (message.kind !== 'close') {
    port.postMessage(run(message));
    if (message.kind === 'drop' && !givingBack) giveBack();
    return;
  }
  givingBack = false;
  try {
    // A file that was moved away is closed without this, and what is in its journal would be lost to it.
    db.pragma('wal_checkpoint(truncate)');
  } catch {
    // A full disk, say: the journal stays, and is read when the file is opened again.
  }
  db.close();
  port.postMessage({ id: message.id, chunks } satisfies FromSampleWriter);
  port.close();
});
port.postMessage({ id: 0, chunks } satisfies FromSampleWriter);
