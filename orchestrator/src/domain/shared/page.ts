/** A part of a list, and whether there is more of it. */
export interface Page<T> {
  readonly items: T[];
  readonly more: boolean;
}

/** What part of a list is asked for. */
export interface PageWish {
  readonly limit: number;
  readonly offset: number;
}

/**
 * Reads a page. One row more than was asked for says whether there is another page; nothing is counted.
 * @param read gives at most `limit` rows after `offset`
 */
export async function readPage<T>(wish: PageWish, read: (wish: PageWish) => Promise<T[]>): Promise<Page<T>> {
  if (wish.limit === 0) return { items: [], more: false };
  const rows = await read({ limit: wish.limit + 1, offset: wish.offset });
  return { items: rows.slice(0, wish.limit), more: rows.length > wish.limit };
}

/** Rows of a page as what they stand for. */
export const mapPage = <T, U>({ items, more }: Page<T>, map: (item: T) => U): Page<U> => ({
  items: items.map(map),
  more,
});
