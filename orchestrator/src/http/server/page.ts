import type { Page, PageRequest } from '../../domain/shared/page.ts';
import { Chunked, JsonBody, Paged } from './handlers.ts';

/** Returns the `Link` header for a list's next page (RFC 8288). */
export function nextLink(url: string, next: Readonly<Record<string, string>>): string {
  const [path = '', query = ''] = url.split('?', 2);
  const parameters = new URLSearchParams(query);
  for (const [name, value] of Object.entries(next)) parameters.set(name, value);
  return `<${path}?${parameters}>; rel="next"`;
}

/** Returns a page with the query parameters for the next page. */
export const paged = <T>({ items, more }: Page<T>, { limit, offset }: PageRequest): Paged<T> =>
  new Paged(items, more ? { limit: String(limit), offset: String(offset + items.length) } : null);

const itemsPerChunk = 500;

/**
 * Returns a page as {@link paged} does, from serialized items. Writes a long page in chunks.
 * @param join returns the JSON array of a short page
 */
export function pagedJson<T>(
  { items, more }: Page<Buffer>,
  { limit, offset }: PageRequest,
  join: (items: readonly Buffer[]) => JsonBody<readonly T[]> = arrayOf,
): Paged<T> {
  function* chunks(): Generator<JsonBody<readonly T[]>> {
    for (let start = 0; start < items.length; start += itemsPerChunk)
      yield arrayOf(items.slice(start, start + itemsPerChunk));
  }
  const next = more ? { limit: String(limit), offset: String(offset + items.length) } : null;
  return new Paged(items.length <= itemsPerChunk ? join(items) : new Chunked(chunks()), next);
}

/** Maximum size of all arrays that {@link JoinedPages} caches, in bytes. */
const maxJoinedBytes = 32 * 1024 * 1024;

interface JoinedPage<T> {
  readonly items: readonly Buffer[];
  readonly body: JsonBody<readonly T[]>;
}

/**
 * Caches pages as JSON arrays, because garbage collection of many large allocations costs more than the responses
 * themselves. Replaces an array when an item becomes a different `Buffer`, so callers must not modify items.
 */
export class JoinedPages<T> {
  /** Keyed by limit and offset, least recently used first. */
  readonly #pages = new Map<string, JoinedPage<T>>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes = maxJoinedBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the page with these items as a JSON array. */
  join({ limit, offset }: PageRequest, items: readonly Buffer[]): JsonBody<readonly T[]> {
    const key = `${limit} ${offset}`;
    const kept = this.#pages.get(key);
    if (kept !== undefined) this.#delete(key, kept);
    const isUnchanged =
      kept !== undefined && kept.items.length === items.length && items.every((item, at) => item === kept.items[at]);
    const page = isUnchanged ? kept : { items, body: arrayOf<T>(items) };
    this.#pages.set(key, page);
    this.#bytes += sizeOf(page);
    for (const [oldest, old] of this.#pages) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#delete(oldest, old);
    }
    return page.body;
  }

  #delete(key: string, page: JoinedPage<T>): void {
    this.#pages.delete(key);
    this.#bytes -= sizeOf(page);
  }
}

/** Overhead per page besides the JSON, in bytes, so that empty pages count too. */
const pageOverhead = 500;
/** Doubles the size, because a cached page also retains its items, which are about as large as the JSON. */
const sizeOf = ({ body }: JoinedPage<unknown>): number => 2 * body.json.length + pageOverhead;

/** Streams a complete list of items as JSON while the items are being read. */
export function inChunks<T>(parts: AsyncIterable<readonly Buffer[]>): Chunked<T> {
  async function* chunks(): AsyncGenerator<JsonBody<readonly T[]>> {
    for await (const part of parts) yield arrayOf(part);
  }
  return new Chunked(chunks());
}

const openingBracket = 0x5b;
const comma = 0x2c;
const closingBracket = 0x5d;

/** Joins serialized items into a JSON array. */
function arrayOf<T>(items: readonly Buffer[]): JsonBody<readonly T[]> {
  if (items.length === 0) return new JsonBody('[]');
  const array = Buffer.allocUnsafe(items.reduce((sum, { length }) => sum + length + 1, 1));
  let end = 0;
  for (const item of items) {
    array[end] = end === 0 ? openingBracket : comma;
    end += 1 + item.copy(array, end + 1);
  }
  array[end] = closingBracket;
  return new JsonBody(array);
}
