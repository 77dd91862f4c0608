import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { isUlid } from '@muster/protocol';
import type { Database } from 'better-sqlite3';
import { TransferRefused } from './transfer-table.ts';

/**
 * Imports transcripts from PostgreSQL, which stores them in tables, into SQLite, which stores them in files. The tables
 * are filled like all other tables, so that their digests are verified, and are then replaced with files.
 */

/** Tables that exist only in PostgreSQL. Exports of SQLite do not contain them. */
export const transcriptTables: ReadonlySet<string> = new Set(['terminal_transcripts', 'terminal_chunks']);
/** The schema version that adds the tables. */
const addedIn = 32;
const ending = '.importing';

export function createTranscriptTables(db: Database, version: number): void {
  if (version < addedIn) return;
  db.exec(`create table terminal_transcripts (session_id text primary key not null, writer text not null,
    bytes integer not null, packed integer not null) strict`);
  db.exec(`create table terminal_chunks (session_id text not null, start integer not null, size integer not null,
    packed integer not null, bytes blob not null, primary key (session_id, start)) strict`);
}

interface Chunk {
  readonly size: number;
  readonly packed: number;
  readonly bytes: Buffer;
}

/**
 * Writes each transcript to a temporary file in the directory, which {@link nameTranscripts} renames, and drops the
 * tables.
 * @returns whether there were transcripts
 * @throws TransferRefused if the rows are not valid transcripts
 */
export function extractTranscripts(db: Database, directory: string): boolean {
  const [there] = db.prepare(`select 1 from sqlite_schema where name = 'terminal_transcripts'`).all();
  if (!there) return false;
  const sessions = db.prepare<[], { session_id: string }>('select session_id from terminal_transcripts').all();
  const chunks = db.prepare<[string], Chunk>(
    'select size, packed, bytes from terminal_chunks where session_id = ? order by start',
  );
  if (sessions.length > 0) mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const { session_id } of sessions) {
    if (!isUlid(session_id)) throw new TransferRefused('a transcript has no valid session ID: the export is damaged');
    const path = join(directory, `${session_id}.cast${ending}`);
    rmSync(path, { force: true });
    const file = openSync(path, 'wx', 0o600);
    try {
      for (const chunk of chunks.iterate(session_id)) writeAll(file, contentOf(chunk));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }
  db.exec('drop table terminal_chunks');
  db.exec('drop table terminal_transcripts');
  return sessions.length > 0;
}

function contentOf({ size, packed, bytes }: Chunk): Buffer {
  let content = bytes;
  try {
    if (packed !== 0) content = gunzipSync(bytes, { maxOutputLength: Math.max(1, size) });
  } catch {
    throw new TransferRefused('a transcript cannot be decompressed: the export is damaged');
  }
  if (content.length !== size) throw new TransferRefused('a transcript has the wrong size: the export is damaged');
  return content;
}

function writeAll(file: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

/** Gives the extracted files their final names. */
export function nameTranscripts(directory: string): void {
  for (const path of extracted(directory)) renameSync(path, path.slice(0, -ending.length));
}

/** Removes extracted files that have no final name. */
export function dropTranscripts(directory: string): void {
  for (const path of extracted(directory)) rmSync(path, { force: true });
}

const extracted = (directory: string): string[] =>
  existsSync(directory)
    ? readdirSync(directory)
        .filter((name) => name.endsWith(`.cast${ending}`))
        .map((name) => join(directory, name))
    : [];
