export interface Page<T> {
  readonly items: T[];
  readonly more: boolean;
}

export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}

/**
 * Reads a page. Reads one row more than requested to determine whether another page follows.
 * @param read returns at most `limit` rows after `offset`
 */
export async function readPage<T>(
  request: PageRequest,
  read: (request: PageRequest) => Promise<T[]>,
): Promise<Page<T>> {
  if (request.limit === 0) return { items: [], more: false };
  const rows = await read({ limit: request.limit + 1, offset: request.offset });
  return { items: rows.slice(0, request.limit), more: rows.length > request.limit };
}

export const mapPage = <T, U>({ items, more }: Page<T>, map: (item: T) => U): Page<U> => ({
  items: items.map(map),
  more,
});
