import { type Position, positionOf, type TextLine } from '../text-edit/lines.ts';

/** Finds the agent's lines again after others changed the file, if the resource replaced every line. */

/** A record of a replaced line. `by` is the agent's line; `above` and `below` are the neighbors before the change. */
type Placed = Pick<Position, 'index' | 'above' | 'below'> & { by?: string };

/** Returns the agent's line at each recorded position, because neighbors may be replaced as well. */
export const neighborsOf = (entries: readonly Placed[]): ReadonlyMap<number, string | undefined> =>
  new Map(entries.map(({ index, by }) => [index, by]));

/**
 * Returns how well a position matches the record: 2 for each neighbor, and 1 for the index.
 * @param neighbors what `neighborsOf` returns
 */
export function rankOf(
  entry: Placed,
  at: Pick<Position, 'index' | 'above' | 'below'>,
  neighbors: ReadonlyMap<number, string | undefined>,
): number {
  const above = at.above === entry.above || (at.above !== null && at.above === neighbors.get(entry.index - 1));
  const below = at.below === entry.below || (at.below !== null && at.below === neighbors.get(entry.index + 1));
  return 2 * Number(above) + 2 * Number(below) + Number(at.index === entry.index);
}

/** The least rank at which a line with another text that matches counts as the recorded one. */
export const sameLine = 3;
/** The least rank for a line that does not match: both neighbors, as the index says nothing after lines were deleted. */
const sameGap = 4;

/**
 * Returns the position of the agent's line for each record. A line that others edited is found between its neighbors,
 * or, if it matches, at its index next to one neighbor. A record without a line has no position.
 * @param matching positions of the lines that `match` matches
 */
export function placesOf<E extends Placed>(
  entries: readonly E[],
  lines: readonly TextLine[],
  matching: ReadonlySet<number>,
): Map<number, E> {
  const places = new Map<number, E>();
  const neighbors = neighborsOf(entries);
  const byText = new Map<string | undefined, number[]>(entries.map(({ by }) => [by, []]));
  for (const [index, { text }] of lines.entries()) byText.get(text)?.push(index);
  /** Assigns a free line with the agent's text, and returns the records without one. */
  const placeByText = (left: readonly E[], leastRank: number): E[] =>
    left.filter((entry) => {
      const free = (byText.get(entry.by) as number[])
        .filter((index) => !places.has(index))
        .map((index) => ({ index, rank: rankOf(entry, positionOf(lines, index, 1), neighbors) }));
      const best = free.reduce((most, { rank }) => Math.max(most, rank), leastRank);
      const nearest = nearestOf(
        free.flatMap(({ index, rank }) => (rank === best ? [index] : [])),
        entry.index,
      );
      if (nearest !== null) places.set(nearest, entry);
      return nearest === null;
    });
  const unplaced = placeByText(entries, 2).filter((entry) => {
    const here = [entry.index, ...lines.keys()].find((index) => {
      if (lines[index] === undefined || places.has(index)) return false;
      return rankOf(entry, positionOf(lines, index, 1), neighbors) >= (matching.has(index) ? sameLine : sameGap);
    });
    if (here !== undefined) places.set(here, entry);
    return here === undefined;
  });
  placeByText(unplaced, 0);
  return places;
}

const nearestOf = (indices: readonly number[], to: number): number | null =>
  indices.reduce<number | null>(
    (best, index) => (best === null || Math.abs(index - to) < Math.abs(best - to) ? index : best),
    null,
  );
