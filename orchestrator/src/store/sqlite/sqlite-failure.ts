import type { ConstraintViolation } from '../database.ts';

/**
 * Effect of an SQLite error on its transaction.
 *
 * `lost_sync`: it is unknown which part of the commit is on the disk, so the process must exit and read the database
 * again after a restart. `bug`: an error in Muster, such as SQL that does not match the tables or a value of the wrong
 * type.
 */
export type SqliteFailure =
  | { readonly kind: 'constraint'; readonly constraint: ConstraintViolation['constraint'] }
  | { readonly kind: 'full' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'lost_sync' }
  | { readonly kind: 'bug' };

const unavailable = new Set([
  'SQLITE_BUSY',
  'SQLITE_CANTOPEN',
  'SQLITE_CORRUPT',
  'SQLITE_INTERRUPT',
  'SQLITE_IOERR',
  'SQLITE_LOCKED',
  'SQLITE_NOMEM',
  'SQLITE_NOTADB',
  'SQLITE_PERM',
  'SQLITE_PROTOCOL',
  'SQLITE_READONLY',
]);

const constraints: Readonly<Record<string, ConstraintViolation['constraint']>> = {
  SQLITE_CONSTRAINT_UNIQUE: 'unique',
  SQLITE_CONSTRAINT_PRIMARYKEY: 'unique',
  SQLITE_CONSTRAINT_FOREIGNKEY: 'foreign_key',
  SQLITE_CONSTRAINT_NOTNULL: 'not_null',
  SQLITE_CONSTRAINT_CHECK: 'check',
};

/** Classifies a better-sqlite3 error by its (extended) result code. */
export function sqliteFailure(error: unknown): SqliteFailure {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string') return { kind: 'bug' };
  if (code.startsWith('SQLITE_CONSTRAINT')) return { kind: 'constraint', constraint: constraints[code] ?? 'other' };
  if (code === 'SQLITE_FULL') return { kind: 'full' };
  if (code === 'SQLITE_IOERR_FSYNC' || code === 'SQLITE_IOERR_DIR_FSYNC') return { kind: 'lost_sync' };
  // An extended code consists of the primary code and a suffix, such as SQLITE_IOERR_WRITE.
  const primary = code.split('_').slice(0, 2).join('_');
  return { kind: unavailable.has(primary) ? 'unavailable' : 'bug' };
}
