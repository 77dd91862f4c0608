import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { executable } from '@muster/protocol/executable';
import Sqlite, { type Database } from 'better-sqlite3';

/** How long a connection waits for a lock that another process holds (a backup, a person with a shell), in ms. */
const busyTimeoutMs = 5_000;

/** The single executable brings the native part of SQLite with it, and puts it beside the database. */
function native(file: string): { nativeBinding?: string } {
  const addon = executable()?.addon('sqlite', dirname(file));
  // The types know of a path only; what is loaded already is taken as well.
  return addon === undefined ? {} : { nativeBinding: addon as string };
}

/**
 * Opens the file for writing; a new one is readable by its owner alone, and so are the log and index beside it, which
 * SQLite makes with the same mode.
 */
export function openSqliteFile(file: string): Database {
  closeSync(openSync(file, 'a', 0o600));
  return new Sqlite(file, { timeout: busyTimeoutMs, ...native(file) });
}

/** Settings of a writing connection: what is committed is on disk, and keys are held to. */
export function configureSqlite(db: Database): void {
  db.pragma('journal_mode = wal');
  db.pragma('synchronous = full');
  db.pragma('foreign_keys = on');
  db.pragma('cache_size = -16000');
  db.pragma('temp_store = memory');
  // A log that grew under a long read is cut back once it is folded in.
  db.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
}

/** Opens the file for reading only; a writing connection must have opened it before. */
export function openSqliteReader(file: string): Database {
  const db = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs, ...native(file) });
  db.pragma('query_only = on');
  db.pragma('cache_size = -32000');
  db.pragma('temp_store = memory');
  return db;
}
