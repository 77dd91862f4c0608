import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { executable } from '@muster/protocol/executable';
import Sqlite, { type Database } from 'better-sqlite3';

/**
 * Milliseconds to wait for a lock that another process holds, such as a backup command or an operator's SQLite shell.
 */
const busyTimeoutMs = 5_000;

/** Returns SQLite's native addon, which the standalone executable contains and extracts next to the database. */
function native(file: string): { nativeBinding?: string } {
  const addon = executable()?.addon('sqlite', dirname(file));
  // The type declaration requires a path, but better-sqlite3 also accepts a loaded addon.
  return addon === undefined ? {} : { nativeBinding: addon as string };
}

/**
 * Opens the file for writing. Only the owner can read a new file. SQLite creates its write-ahead log and index with the
 * same mode.
 */
export function openSqliteFile(file: string): Database {
  closeSync(openSync(file, 'a', 0o600));
  return new Sqlite(file, { timeout: busyTimeoutMs, ...native(file) });
}

/** Configures a writing connection: commits are durable, and foreign keys are enforced. */
export function configureSqlite(db: Database): void {
  db.pragma('journal_mode = wal');
  db.pragma('synchronous = full');
  db.pragma('foreign_keys = on');
  db.pragma('cache_size = -16000');
  db.pragma('temp_store = memory');
  // Truncates a write-ahead log that has grown beyond this size during a long read.
  db.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
}

/** Opens the file for reading. A writing connection must have opened the file first. */
export function openSqliteReader(file: string): Database {
  const db = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs, ...native(file) });
  db.pragma('query_only = on');
  db.pragma('cache_size = -32000');
  db.pragma('temp_store = memory');
  return db;
}
