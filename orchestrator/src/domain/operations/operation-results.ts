import type { ResourceResult } from '@muster/protocol';
import { fromJson, type JsonText } from '../../store/json-text.ts';
import { resultPage } from '../../store/queries/operation-results.ts';
import type { Context } from '../shared/context.ts';

/** Reads an operation's results in pages, because agents choose their number and size. */

/** Maximum number of bytes per page. */
export const pageBytes = 1024 * 1024;

/** A result with its position, as JSON. */
export interface PlacedText {
  readonly position: number;
  readonly text: JsonText<ResourceResult>;
}

/** Maximum number of characters of a row with several results, so that a row takes up only a small part of a page. */
const maxRowLength = 64 * 1024;

/**
 * Returns the rows to store for results. Consecutive results share a row, because an additional row costs more than an
 * additional result in an existing row.
 * @param next position after the last stored result. Earlier results may already be stored, so each gets its own row.
 */
export function rowsOfResults(results: readonly PlacedText[], next: number): { position: number; results: string }[] {
  const rows: { position: number; end: number; results: string }[] = [];
  for (const { position, text } of results) {
    const last = rows.at(-1);
    if (last?.end === position && last.position >= next && last.results.length + text.length < maxRowLength) {
      last.results += `\n${text}`;
      last.end++;
    } else rows.push({ position, end: position + 1, results: text });
  }
  return rows.map(({ position, results }) => ({ position, results }));
}

/** Yields stored results in pages, in order of position. Yields to the event loop between pages. */
export async function* storedResults({ db }: Pick<Context, 'db'>, operationId: string): AsyncGenerator<PlacedText[]> {
  let next = 0;
  for (let after = -1; ; ) {
    const rows = await db.all(resultPage, { operation_id: operationId, after, bytes: pageBytes });
    const last = rows.at(-1);
    if (last === undefined) return;
    const page: PlacedText[] = [];
    for (const row of rows)
      for (const [index, text] of row.results.split('\n').entries()) {
        const position = row.position + index;
        // Rows overlap only if the agent repeated a result. The first result counts.
        if (position < next) continue;
        page.push({ position, text });
        next = position + 1;
      }
    if (page.length > 0) yield page;
    after = last.position;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Yields results in pages, in order of position: stored results, merged with those in a report that is not yet
 * committed.
 * @param fresh uncommitted results by position; they replace stored results
 * @param total number of results that the agent reported; if all are fresh, nothing is read
 */
export async function* reportedResults(
  context: Pick<Context, 'db'>,
  operationId: string,
  fresh: ReadonlyMap<number, ResourceResult>,
  total: number,
): AsyncGenerator<(readonly [position: number, result: ResourceResult])[]> {
  const left = [...fresh].sort(([a], [b]) => a - b);
  if (fresh.size !== total)
    for await (const rows of storedResults(context, operationId)) {
      const stored = rows
        .filter(({ position }) => !fresh.has(position))
        .map(({ position, text }) => [position, fromJson(text)] as const);
      const last = rows.at(-1)?.position ?? -1;
      const end = left.findIndex(([position]) => position > last);
      const between = left.splice(0, end === -1 ? left.length : end);
      yield [...stored, ...between].sort(([a], [b]) => a - b);
    }
  yield left;
}
