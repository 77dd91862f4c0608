import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toJson } from '../../store/json-text.ts';
import { type PlacedText, rowsOfResults } from './operation-results.ts';

const at = (position: number, length = 0): PlacedText => ({ position, text: toJson('x'.repeat(length)) as never });

describe('rowsOfResults', () => {
  test('puts consecutive results into one row, and begins another row after a gap', () => {
    expect(rowsOfResults([at(0), at(1, 1), at(3), at(2)], 0)).toEqual([
      { position: 0, results: '""\n"x"' },
      { position: 3, results: '""' },
      { position: 2, results: '""' },
    ]);
    expect(rowsOfResults([], 0)).toEqual([]);
  });

  test('begins another row before a row exceeds 64 KiB', () => {
    const rows = rowsOfResults([at(0, 30_000), at(1, 30_000), at(2, 30_000), at(3, 100_000), at(4)], 0);
    expect(rows.map(({ position, results }) => [position, results.split('\n').length])).toEqual([
      [0, 2],
      [2, 1],
      [3, 1],
      [4, 1],
    ]);
  });

  test('stores a position at most twice, even if an agent repeats its results in different groups', () => {
    const group = fc.record({ first: fc.nat(12), count: fc.integer({ min: 1, max: 6 }) });
    fc.assert(
      fc.property(fc.array(group, { maxLength: 30 }), (groups) => {
        const stored = new Map<number, number>();
        let next = 0;
        for (const { first, count } of groups) {
          const results = Array.from({ length: count }, (_, index) => at(first + index));
          for (const row of rowsOfResults(results, next))
            if (!stored.has(row.position)) stored.set(row.position, row.results.split('\n').length);
          next = Math.max(next, first + count);
        }
        const times = new Map<number, number>();
        for (const [position, count] of stored)
          for (let each = position; each < position + count; each++) times.set(each, (times.get(each) ?? 0) + 1);
        expect(Math.max(0, ...times.values())).toBeLessThanOrEqual(2);
        for (const { first, count } of groups)
          for (let each = first; each < first + count; each++) expect(times.has(each)).toBe(true);
      }),
    );
  });
});
