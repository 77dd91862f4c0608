import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { executable } from '@muster/protocol/executable';
import Sqlite, { type Database } from 'better-sqlite3';

/** Milliseconds to wait for a lock that another process holds, such as a backup or an operator's SQLite shell. */
const busyTimeoutMs = 5_000;

/** The single executable contains SQLite's native addon, and extracts it next to the database. */
function native(file: string): { nativeBinding?: string } {
  const addon = executable()?.addon('sqlite', dirname(file));
  // The types allow only a path, but a loaded addon works as well.
  return addon === undefined ? {} : { nativeBinding: addon as string };
}

/**
 * Opens the file for writing. A new file is readable by its owner only, and so are its log and index, which SQLite
 * creates with the same mode.
 */
export function openSqliteFile(file: string): Database {
  closeSync(openSync(file, 'a', 0o600));
  return new Sqlite(file, { timeout: busyTimeoutMs, ...native(file) });
}

/** Settings of a writing connection: commits are durable, and foreign keys are enforced. */
export function configureSqlite(db: Database): void {
  db.pragma('journal_mode = wal');
  db.pragma('synchronous = full');
  db.pragma('foreign_keys = on');
  db.pragma('cache_size = -16000');
  db.pragma('temp_store = memory');
  // Truncates a log that grew during a long read, at the next checkpoint.
  db.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
}

/** Opens the file for reading only, after a writing connection has opened it. */
export function openSqliteReader(file: string): Database {
  const db = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs, ...native(file) });
  db.pragma('query_only = on');
  db.pragma('cache_size = -32000');
  db.pragma('temp_store = memory');
  return db;
}
