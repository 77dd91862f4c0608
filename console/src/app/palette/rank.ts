import { compareNames } from '../../parts/table/compare-names.ts';

/** Ranks search results: by how well they match, then by how often they were chosen, then in natural order. */

const isWordPart = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}]/u.test(character);

/**
 * Returns how well a text matches a query, both in lower case: 0 if they are equal, 1 if the text starts with the query,
 * 2 if one of its words does, 3 if it contains the query, 4 if it contains all words of the query. Returns null if it
 * does not match.
 */
export function matchRank(query: string, text: string): number | null {
  if (text === query) return 0;
  const at = text.indexOf(query);
  if (at === 0) return 1;
  if (at > 0) return isWordPart(text[at - 1]) ? 3 : 2;
  const words = query.split(/\s+/);
  return words.length > 1 && words.every((word) => text.includes(word)) ? 4 : null;
}

/** An item that the palette finds. */
export interface Findable {
  /** Unique among all entries. Identifies the entry in the record of uses. */
  readonly id: string;
  readonly name: string;
  /** Other strings that match, such as synonyms and hostnames. They rank after all matches in the name. */
  readonly otherTexts?: readonly string[];
}

export interface Found<Item> {
  readonly item: Item;
  readonly rank: number;
}

/** Added to the rank of a match that is not in the name. */
const otherTextRank = 10;

function rankOf({ name, otherTexts = [] }: Findable, query: string): number | null {
  if (query === '') return 0;
  const inName = matchRank(query, name.toLowerCase());
  if (inName !== null) return inName;
  const ranks = otherTexts.map((text) => matchRank(query, text.toLowerCase())).filter((rank) => rank !== null);
  return ranks.length === 0 ? null : otherTextRank + Math.min(...ranks);
}

/**
 * Returns the best matches, best first, and the number of all matches.
 * @param query trimmed and in lower case; the empty query matches every item
 * @param isOrdered whether the empty query keeps the order of the items, instead of sorting them by name
 * @param usesOf number of times that the operator chose the entry with this id
 */
export function bestMatches<Item extends Findable>(
  items: readonly Item[],
  query: string,
  {
    limit,
    usesOf,
    isOrdered = true,
  }: { readonly limit: number; readonly usesOf: (id: string) => number; readonly isOrdered?: boolean },
): { readonly found: readonly Found<Item>[]; readonly count: number } {
  const compare = (one: Found<Item>, other: Found<Item>): number =>
    one.rank - other.rank ||
    usesOf(other.item.id) - usesOf(one.item.id) ||
    (query === '' && isOrdered ? 0 : compareNames(one.item.name, other.item.name));
  const found: Found<Item>[] = [];
  let count = 0;
  // Keeps only the best matches, because sorting ten thousand of them would delay the next keystroke.
  for (const item of items) {
    const rank = rankOf(item, query);
    if (rank === null) continue;
    count++;
    const match = { item, rank };
    const last = found.at(-1);
    if (found.length === limit && last !== undefined && compare(match, last) >= 0) continue;
    const at = found.findIndex((other) => compare(match, other) < 0);
    found.splice(at === -1 ? found.length : at, 0, match);
    found.length = Math.min(found.length, limit);
  }
  return { found, count };
}
