import { sql } from 'kysely';

/**
 * SQL for pages whose size in bytes is limited. A query first adds up the sizes of rows, and then reads only the rows
 * that fit. Both databases can determine the length of a text without reading it.
 */

/** Returns SQL for the total size of the given columns in bytes. Null values count as 0. */
export const bytesOf = (...columns: string[]) =>
  sql<number>`${sql.join(
    columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`),
    sql` + `,
  )}`;

/**
 * Returns SQL for the total of the column `bytes` in all preceding rows, in the given order. A page contains the rows
 * whose total is below the limit, so it always contains at least one row.
 */
export const bytesBefore = (order: readonly string[], direction: 'asc' | 'desc' = 'asc') =>
  sql<number>`sum(bytes) over (order by ${sql.join(
    order.map((column) => sql`${sql.ref(column)} ${sql.raw(direction)}`),
  )} rows between unbounded preceding and current row) - bytes`;
