import type { ResourceResult } from '@muster/protocol';
import { fromJson, type JsonText } from '../../store/json-text.ts';
import { resultPage } from '../../store/queries/operation-results.ts';
import type { Context } from '../shared/context.ts';

/** Reads the results of an operation in pages, because agents choose their number and size. */

/** Maximum bytes of a page. */
export const pageBytes = 1024 * 1024;

/** Yields stored results in pages, in order of position. Yields to the event loop between pages. */
export async function* storedResults(
  { db }: Pick<Context, 'db'>,
  operationId: string,
): AsyncGenerator<{ position: number; result: JsonText<ResourceResult> }[]> {
  for (let after = -1; ; ) {
    const rows = await db.all(resultPage, { operation_id: operationId, after, bytes: pageBytes });
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.position;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Yields results in pages, in order of position: stored results, merged with those of a report that is not yet
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
        .map(({ position, result }) => [position, fromJson(result)] as const);
      const last = rows.at(-1)?.position ?? -1;
      const end = left.findIndex(([position]) => position > last);
      const between = left.splice(0, end === -1 ? left.length : end);
      yield [...stored, ...between].sort(([a], [b]) => a - b);
    }
  yield left;
}
