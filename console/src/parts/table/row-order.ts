import { compareNames } from './compare-names.ts';

/** Sorts a table's rows in steps, because comparing the values of ten thousand rows takes longer than a frame. */

/**
 * Maximum number of rows that a step sorts. Does not count a row that is already in order, because the built-in sort
 * takes linear time for such rows.
 */
const rowsPerStep = 500;

type SortValue = string | number | null;

/** The keys of rows in the order from an earlier sort. The rows may have changed since. */
export interface KnownOrder {
  readonly column: string;
  readonly descending: boolean;
  readonly keys: readonly string[];
}

export interface SortedRows<Row> {
  readonly rows: readonly Row[];
  /** The keys of `rows`, in the same order. */
  readonly keys: readonly string[];
}

interface Placed<Row> {
  readonly row: Row;
  readonly key: string;
  readonly value: SortValue;
  readonly index: number;
}

/** Orders numbers by value and all other values as text. */
function compareValues(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return compareNames(String(a), String(b));
}

/**
 * Returns a function that compares rows. Rows without a value come last in both directions, and rows with the same value
 * keep their order.
 */
function comparerOf(descending: boolean) {
  return (a: Placed<unknown>, b: Placed<unknown>): number => {
    if (a.value === null || b.value === null) {
      if (a.value !== b.value) return a.value === null ? 1 : -1;
    } else {
      const order = compareValues(a.value, b.value);
      if (order !== 0) return descending ? -order : order;
    }
    return a.index - b.index;
  };
}

/**
 * Sorts rows. Each iteration is a step; the first also reads all values.
 * @param known order from an earlier sort by the same column. It does not affect the result, but its rows need only one
 * step.
 */
export function* sortInSteps<Row>(
  rows: readonly Row[],
  by: {
    readonly keyOf: (row: Row) => string;
    readonly sortValue: (row: Row) => SortValue;
    readonly descending: boolean;
    readonly known: KnownOrder | null;
  },
): Generator<undefined, SortedRows<Row>> {
  const { keyOf, sortValue, descending, known } = by;
  const left = new Map<string, Placed<Row>>();
  for (const [index, row] of rows.entries()) {
    const key = keyOf(row);
    left.set(key, { row, key, value: sortValue(row), index });
  }
  const sorted: Placed<Row>[] = [];
  const knownKeys = known?.descending === descending ? known.keys : (known?.keys.toReversed() ?? []);
  for (const key of knownKeys) {
    const row = left.get(key);
    if (row === undefined) continue;
    sorted.push(row);
    left.delete(key);
  }
  const compare = comparerOf(descending);
  let before: Placed<Row> | null = null;
  let added = 0;
  for (const row of left.values()) {
    if (before !== null && compare(before, row) > 0 && ++added === rowsPerStep) {
      sorted.sort(compare);
      added = 0;
      yield;
    }
    sorted.push(row);
    before = row;
  }
  sorted.sort(compare);
  return { rows: sorted.map(({ row }) => row), keys: sorted.map(({ key }) => key) };
}
