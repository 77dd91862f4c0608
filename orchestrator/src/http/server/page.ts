import type { Page, PageRequest } from '../../domain/shared/page.ts';
import { Chunked, JsonBody, type JsonText, Paged } from './handlers.ts';

/** Returns the `Link` header to the next page of a list (RFC 8288). */
export function nextLink(url: string, next: Readonly<Record<string, string>>): string {
  const [path = '', query = ''] = url.split('?', 2);
  const parameters = new URLSearchParams(query);
  for (const [name, value] of Object.entries(next)) parameters.set(name, value);
  return `<${path}?${parameters}>; rel="next"`;
}

/** Returns a page with the query parameters of the next one. */
export const paged = <T>({ items, more }: Page<T>, { limit, offset }: PageRequest): Paged<T> =>
  new Paged(items, more ? { limit: String(limit), offset: String(offset + items.length) } : null);

const itemsPerChunk = 500;

/** Returns a page as {@link paged} does, for many items in JSON text that are written in pieces. */
export function pagedInChunks<T>({ items, more }: Page<JsonText<T>>, { limit, offset }: PageRequest): Paged<T> {
  function* chunks(): Generator<JsonBody<readonly T[]>> {
    for (let start = 0; start < items.length; start += itemsPerChunk)
      yield pieceOf(items.slice(start, start + itemsPerChunk));
  }
  const next = more ? { limit: String(limit), offset: String(offset + items.length) } : null;
  return new Paged(new Chunked(chunks()), next);
}

/** Returns a whole list of items in JSON text, which is written while it is read. */
export function inChunks<T>(parts: AsyncIterable<readonly JsonText<T>[]>): Chunked<T> {
  async function* chunks(): AsyncGenerator<JsonBody<readonly T[]>> {
    for await (const part of parts) yield pieceOf(part);
  }
  return new Chunked(chunks());
}

const pieceOf = <T>(items: readonly JsonText<T>[]): JsonBody<readonly T[]> => new JsonBody(`[${items.join()}]`);
