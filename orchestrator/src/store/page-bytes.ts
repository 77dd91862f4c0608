import { sql } from 'kysely';

/**
 * Pages with a maximum size in bytes. Sizes are summed over keys alone, and only the rows that fit are read: both
 * databases know the length of a text without reading it.
 */

/** Bytes of these columns of a row; null counts as 0. */
export const bytesOf = (...columns: string[]) =>
  sql<number>`${sql.join(
    columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`),
    sql` + `,
  )}`;

/**
 * Bytes of the rows before this one, in an order. A page has the rows for which this is below its limit: at least one.
 */
export const bytesBefore = (bytes: string, order: readonly string[], direction: 'asc' | 'desc' = 'asc') =>
  sql<number>`sum(${sql.ref(bytes)}) over (order by ${sql.join(
    order.map((column) => sql`${sql.ref(column)} ${sql.raw(direction)}`),
  )} rows between unbounded preceding and current row) - ${sql.ref(bytes)}`;
