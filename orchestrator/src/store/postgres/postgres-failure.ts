import type { ConstraintViolation } from '../database.ts';

/** A new connection is refused because the server does not confirm that this process holds the lock. */
export class LockNotHeld extends Error {
  constructor() {
    super('this process does not hold the database lock');
    this.name = 'LockNotHeld';
  }
}

/**
 * Effect of a PostgreSQL error on its transaction. `again`: a serialization conflict; the transaction can be retried.
 * `stale`: another process has migrated the database, and a prepared statement of this connection no longer matches the
 * schema; the transaction can be retried on another connection. `gone`: the connection or server was lost, possibly
 * after a commit.
 */
export type PostgresFailure =
  | { readonly kind: 'constraint'; readonly constraint: ConstraintViolation['constraint'] }
  | { readonly kind: 'again' }
  | { readonly kind: 'stale' }
  | { readonly kind: 'full' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'bug' };

const constraints: Readonly<Record<string, ConstraintViolation['constraint']>> = {
  '23505': 'unique',
  '23503': 'foreign_key',
  '23502': 'not_null',
  '23514': 'check',
};

/** SQLSTATE code for a lock that a statement does not wait for, or not any longer. */
export const lockNotAvailable = '55P03';
/** SQLSTATE classes and codes for server failures. */
// 57014 is the code for an exceeded statement_timeout.
const unavailable = ['25006', '53', '55', '57014', '58', 'XX', '28', '3D000'];
/** SQLSTATE classes and codes for a lost or closed connection, and for a server that is starting or shutting down. */
const lostConnection = ['08', '25P03', '25P04', '57P'];

/** Classifies a driver error by its SQLSTATE or its socket error code. */
export function postgresFailure(error: unknown): PostgresFailure {
  // A restarted server no longer holds the lock, and this process may not have detected that yet.
  if (error instanceof LockNotHeld) return { kind: 'unavailable' };
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string')
    // The driver sets no code if a connection closes during a query or times out.
    return {
      kind: /connection|timeout|not queryable/i.test(error instanceof Error ? error.message : '') ? 'gone' : 'bug',
    };
  if (code.startsWith('23')) return { kind: 'constraint', constraint: constraints[code] ?? 'other' };
  if (code === '40001' || code === '40P01') return { kind: 'again' };
  // The error "cached plan must not change result type" has the code for unsupported features. Its text may be
  // translated.
  if (code === '0A000' && (error as { routine?: unknown }).routine === 'RevalidateCachedQuery')
    return { kind: 'stale' };
  if (code === '53100') return { kind: 'full' };
  if (lostConnection.some((prefix) => code.startsWith(prefix))) return { kind: 'gone' };
  if (unavailable.some((prefix) => code.startsWith(prefix))) return { kind: 'unavailable' };
  // Matches socket errors, such as ECONNREFUSED, EPIPE, or ETIMEDOUT, but not SQLSTATE codes.
  return { kind: /^E[A-Z]{3,}$/.test(code) ? 'gone' : 'bug' };
}
