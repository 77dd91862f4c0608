import { expect, test } from 'vitest';
import { type KnownOrder, type SortedRows, sortInSteps } from './row-order.ts';

interface Machine {
  readonly name: string;
  readonly cpus: number | null;
}

/** Returns the sorted rows and the number of steps that the sort took. */
function sorted(
  rows: readonly Machine[],
  {
    sortValue = ({ name }: Machine): string | number | null => name,
    descending = false,
    known = null as KnownOrder | null,
  } = {},
): SortedRows<Machine> & { readonly steps: number } {
  const sort = sortInSteps(rows, { keyOf: ({ name }) => name, sortValue, descending, known });
  for (let steps = 1; ; steps++) {
    const { done, value } = sort.next();
    if (done) return { ...value, steps };
  }
}

/** Returns machines in an order that looks random but is always the same. */
const machines = (count: number): Machine[] =>
  Array.from({ length: count }, (_, index) => ({ name: `web-${(index * 7_919) % count}`, cpus: index % 3 }));

test('sorts numbers by value, also within text', () => {
  const rows = [
    { name: 'web-10', cpus: 8 },
    { name: 'web-9', cpus: 16 },
    { name: 'db-1', cpus: 9 },
  ];
  expect(sorted(rows).keys).toEqual(['db-1', 'web-9', 'web-10']);
  expect(sorted(rows, { descending: true }).keys).toEqual(['web-10', 'web-9', 'db-1']);
  expect(sorted(rows, { sortValue: ({ cpus }) => cpus }).keys).toEqual(['web-10', 'db-1', 'web-9']);
});

test.each([false, true])(
  'puts rows without a value last, and keeps the order of equal rows (descending: %s)',
  (descending) => {
    const rows = [
      { name: 'c', cpus: null },
      { name: 'b', cpus: 4 },
      { name: 'a', cpus: 4 },
      { name: 'd', cpus: null },
    ];
    const { keys } = sorted(rows, { sortValue: ({ cpus }) => cpus, descending });
    expect(keys).toEqual(['b', 'a', 'c', 'd']);
  },
);

test('returns the rows and their keys in the same order', () => {
  const { rows, keys } = sorted(machines(2_500));
  expect(rows.map(({ name }) => name)).toEqual(keys);
});

test('sorts many rows in steps', () => {
  const { keys, steps } = sorted(machines(10_000));
  expect(steps).toBeGreaterThanOrEqual(10);
  expect(keys).toEqual(Array.from({ length: 10_000 }, (_, index) => `web-${index}`));
});

test('sorts rows in one step if they are already in order', () => {
  const inOrder = sorted(machines(10_000)).rows;
  expect(sorted(inOrder)).toEqual({ ...sorted(machines(10_000)), steps: 1 });
});

test.each([false, true])('sorts rows in one step if their order is known (descending: %s)', (descending) => {
  const keys = sorted(machines(10_000)).keys;
  const again = sorted(machines(10_000), { descending, known: { column: 'name', descending: false, keys } });
  expect(again.steps).toBe(1);
  expect(again.keys).toEqual(descending ? keys.toReversed() : keys);
});

test('ignores an outdated order', () => {
  const cpus = ({ cpus }: Machine) => cpus;
  const { keys } = sorted(machines(3_000), { sortValue: cpus });
  const changed = [
    ...machines(3_000)
      .map((row) => ({ ...row, cpus: row.name.length }))
      .slice(5),
    { name: 'new', cpus: 0 },
  ];
  const known = { column: 'cpus', descending: false, keys: keys.toReversed() };
  expect(sorted(changed, { sortValue: cpus, known }).keys).toEqual(sorted(changed, { sortValue: cpus }).keys);
});
