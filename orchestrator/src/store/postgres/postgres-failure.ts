import type { ConstraintViolation } from '../database.ts';

/**
 * What a failure of PostgreSQL means for the transaction that met it. `again`: it lost against another one and may be
 * run once more. `gone`: the connection or the server went away, so the answer to a commit may have been lost.
 */
export type PostgresFailure =
  | { readonly kind: 'constraint'; readonly constraint: ConstraintViolation['constraint'] }
  | { readonly kind: 'again' }
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

/** Classes and codes that say that the server, not the statement, is at fault. */
// 57014: it took longer than statement_timeout.
const unavailable = ['25006', '53', '55', '57014', '58', 'XX', '28', '3D000'];
/** Connection lost or ended by the server, server shutting down or starting up. */
const gone = ['08', '25P03', '25P04', '57P'];

/** Judges an error that the driver threw, by its SQLSTATE or the system's code for the socket. */
export function postgresFailure(error: unknown): PostgresFailure {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string')
    // The driver has no code for a connection that ends under a query or cannot be had in time.
    return { kind: /connection|timeout/i.test(error instanceof Error ? error.message : '') ? 'gone' : 'bug' };
  if (code.startsWith('23')) return { kind: 'constraint', constraint: constraints[code] ?? 'other' };
  if (code === '40001' || code === '40P01') return { kind: 'again' };
  if (code === '53100') return { kind: 'full' };
  if (gone.some((prefix) => code.startsWith(prefix))) return { kind: 'gone' };
  if (unavailable.some((prefix) => code.startsWith(prefix))) return { kind: 'unavailable' };
  // ECONNREFUSED, EPIPE, ETIMEDOUT …: five characters of a SQLSTATE never look like that.
  return { kind: /^E[A-Z]{3,}$/.test(code) ? 'gone' : 'bug' };
}
