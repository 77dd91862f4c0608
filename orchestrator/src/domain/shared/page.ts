export interface Page<T> {
  readonly items: T[];
  readonly more: boolean;
}

/** The requested part of a list. */
export interface PageWish {
  readonly limit: number;
  readonly offset: number;
}

/**
 * Reads a page. Reads one row more than requested to find out whether there is another page.
 * @param read returns at most `limit` rows after `offset`
 */
export async function readPage<T>(wish: PageWish, read: (wish: PageWish) => Promise<T[]>): Promise<Page<T>> {
  if (wish.limit === 0) return { items: [], more: false };
  const rows = await read({ limit: wish.limit + 1, offset: wish.offset });
  return { items: rows.slice(0, wish.limit), more: rows.length > wish.limit };
}

export const mapPage = <T, U>({ items, more }: Page<T>, map: (item: T) => U): Page<U> => ({
  items: items.map(map),
  more,
});
