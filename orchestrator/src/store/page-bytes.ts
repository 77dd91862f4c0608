import { sql } from 'kysely';

/**
 * Pages with a maximum size in bytes. A query sums the sizes of rows by their keys, and reads only the rows that fit:
 * both databases know the length of a text without reading it.
 */

/** SQL for the bytes of these columns of a row; null counts as 0. */
export const bytesOf = (...columns: string[]) =>
  sql<number>`${sql.join(
    columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`),
    sql` + `,
  )}`;

/**
 * SQL for the bytes of all rows before this one, in the given order. A page contains the rows for which this is below
 * the limit, and so at least one row.
 */
export const bytesBefore = (bytes: string, order: readonly string[], direction: 'asc' | 'desc' = 'asc') =>
  sql<number>`sum(${sql.ref(bytes)}) over (order by ${sql.join(
    order.map((column) => sql`${sql.ref(column)} ${sql.raw(direction)}`),
  )} rows between unbounded preceding and current row) - ${sql.ref(bytes)}`;
