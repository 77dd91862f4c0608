import { type Position, positionOf, type TextLine } from '../text-edit/lines.ts';

/** Finds the agent's lines again after others changed the file, if the resource replaced every line. */

/**
 * A record of a replaced line. `text` is the line before the change; null if the agent added its line. `by` is the
 * agent's line; `above` and `below` are the neighbors before the change.
 */
type Placed = Pick<Position, 'index' | 'above' | 'below'> & { text: string | null; by?: string };
type Place = Pick<Position, 'index' | 'above' | 'below'>;
type Neighbor = string | null;
type Neighbors = ReadonlyMap<number, string | undefined>;

/** Returns the agent's line at each recorded position, because neighbors may be replaced as well. */
export const neighborsOf = (entries: readonly Omit<Placed, 'text'>[]): Neighbors =>
  new Map(entries.map(({ index, by }) => [index, by]));

/** Returns the possible neighbors of the agent's line: the recorded ones, and the agent's own lines next to it. */
const wantedOf = ({ index, above, below }: Place, neighbors: Neighbors): { above: Neighbor[]; below: Neighbor[] } => {
  const either = (recorded: Neighbor, own: string | undefined): Neighbor[] =>
    own === undefined || own === recorded ? [recorded] : [recorded, own];
  return { above: either(above, neighbors.get(index - 1)), below: either(below, neighbors.get(index + 1)) };
};

/**
 * Returns how well a position matches the record: 2 for each neighbor, and 1 for the index.
 * @param neighbors result of `neighborsOf`
 */
export function rankOf(entry: Place, at: Place, neighbors: Neighbors): number {
  const wanted = wantedOf(entry, neighbors);
  const [above, below] = [wanted.above.includes(at.above), wanted.below.includes(at.below)];
  return 2 * Number(above) + 2 * Number(below) + Number(at.index === entry.index);
}

const isBlank = (line: Neighbor): boolean => line !== null && line.trim() === '';

/**
 * Reports whether a line whose text differs from the agent's is the recorded one: it is next to a neighbor and at the
 * same index, or between both neighbors. Blank neighbors are too frequent to identify a line.
 */
function isSameLine(entry: Place, at: Place, neighbors: Neighbors): boolean {
  const rank = rankOf(entry, at, neighbors);
  return at.index === entry.index ? rank >= 3 : rank === 4 && !(isBlank(at.above) && isBlank(at.below));
}

/**
 * Positions of some lines in ascending order, in total and grouped by neighbor. The groups keep lookups fast in a file
 * with millions of equal lines.
 */
interface Index {
  all: number[];
  above: Map<Neighbor, number[]>;
  below: Map<Neighbor, number[]>;
  between: Map<Neighbor, Map<Neighbor, number[]>>;
}

const emptyIndex = (): Index => ({ all: [], above: new Map(), below: new Map(), between: new Map() });

function add({ all, above, below, between }: Index, lines: readonly TextLine[], at: number): void {
  const [over, under] = [lines[at - 1]?.text ?? null, lines[at + 1]?.text ?? null];
  all.push(at);
  listIn(above, over).push(at);
  listIn(below, under).push(at);
  let pairs = between.get(over);
  if (pairs === undefined) {
    pairs = new Map();
    between.set(over, pairs);
  }
  listIn(pairs, under).push(at);
}

function listIn(lists: Map<Neighbor, number[]>, neighbor: Neighbor): number[] {
  const list = lists.get(neighbor) ?? [];
  if (list.length === 0) lists.set(neighbor, list);
  return list;
}

/**
 * Returns the position of the agent's line for each record. A line that others edited is the recorded one only if it
 * matches and `isSameLine` holds; any other line is foreign. A record without a line has no position.
 * @param matching positions of the lines that `match` matches, in ascending order
 */
export function placesOf<E extends Placed>(
  entries: readonly E[],
  lines: readonly TextLine[],
  matching: Iterable<number>,
): Map<number, E> {
  const places = new Map<number, E>();
  const neighbors = neighborsOf(entries);
  const byText = new Map<string | undefined, Index>(entries.map(({ by }) => [by, emptyIndex()]));
  for (const [at, { text }] of lines.entries()) {
    const index = byText.get(text);
    if (index !== undefined) add(index, lines, at);
  }
  const edited = emptyIndex();
  for (const at of matching) add(edited, lines, at);
  const nearest = (lists: readonly (readonly number[] | undefined)[], to: number): number | null => {
    const free = lists.map((list) => nearestFree(list ?? [], to, places));
    return free.reduce((best, at) => (at !== null && (best === null || isNearer(at, best, to)) ? at : best), null);
  };
  const rankAt = (entry: E, at: number): number => rankOf(entry, positionOf(lines, at, 1), neighbors);
  /**
   * Returns the best line that is not taken: preferably between both neighbors, otherwise at the index, otherwise next
   * to a neighbor. Returns null if there is no such line.
   */
  const bestIn = (index: Index, entry: E): number | null => {
    const wanted = wantedOf(entry, neighbors);
    const pairs = wanted.above.flatMap((above) => wanted.below.map((below) => index.between.get(above)?.get(below)));
    const between = nearest(pairs, entry.index);
    if (between !== null) return between;
    const here = nearest([index.all], entry.index);
    if (here === entry.index && rankAt(entry, here) >= 3) return here;
    const next = [
      ...wanted.above.map((above) => index.above.get(above)),
      ...wanted.below.map((below) => index.below.get(below)),
    ];
    return nearest(next, entry.index);
  };
  const place = (left: readonly E[], find: (entry: E) => number | null): E[] =>
    left.filter((entry) => {
      const at = find(entry);
      if (at !== null) places.set(at, entry);
      return at === null;
    });
  const textOf = ({ by }: E): Index => byText.get(by) as Index;
  const changed = place(entries, (entry) => bestIn(textOf(entry), entry));
  const moved = place(changed, (entry) => {
    // The neighbors of a line that the agent added do not help to identify another line.
    if (entry.text === null) return null;
    const wanted = wantedOf(entry, neighbors);
    const pairs = wanted.above.flatMap((above) => wanted.below.map((below) => edited.between.get(above)?.get(below)));
    const candidates = [nearest([edited.all], entry.index), ...pairs.map((list) => nearest([list], entry.index))];
    return candidates.find((at) => at !== null && isSameLine(entry, positionOf(lines, at, 1), neighbors)) ?? null;
  });
  place(moved, (entry) => nearest([textOf(entry).all], entry.index));
  return places;
}

const isNearer = (one: number, other: number, to: number): boolean => Math.abs(one - to) < Math.abs(other - to);

/** Returns the position in an ascending list that is nearest to `to` and not taken; null if all are taken. */
function nearestFree(list: readonly number[], to: number, taken: ReadonlyMap<number, unknown>): number | null {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle] as number) < to) low = middle + 1;
    else high = middle;
  }
  let after = low;
  while (after < list.length && taken.has(list[after] as number)) after++;
  let before = low - 1;
  while (before >= 0 && taken.has(list[before] as number)) before--;
  const [one, other] = [list[before], list[after]];
  if (one === undefined || other === undefined) return one ?? other ?? null;
  return isNearer(other, one, to) ? other : one;
}
