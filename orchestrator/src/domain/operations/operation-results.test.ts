import { describe, expect, test } from 'vitest';
import { toJson } from '../../store/json-text.ts';
import { type PlacedText, rowsOfResults } from './operation-results.ts';

const at = (position: number, length = 0): PlacedText => ({ position, text: toJson('x'.repeat(length)) as never });

describe('rowsOfResults', () => {
  test('puts consecutive results into one row, and begins another after a gap', () => {
    expect(rowsOfResults([at(0), at(1, 1), at(3), at(2)])).toEqual([
      { position: 0, results: '""\n"x"' },
      { position: 3, results: '""' },
      { position: 2, results: '""' },
    ]);
    expect(rowsOfResults([])).toEqual([]);
  });

  test('begins another row before one gets longer than 64 KiB', () => {
    const rows = rowsOfResults([at(0, 30_000), at(1, 30_000), at(2, 30_000), at(3, 100_000), at(4)]);
    expect(rows.map(({ position, results }) => [position, results.split('\n').length])).toEqual([
      [0, 2],
      [2, 1],
      [3, 1],
      [4, 1],
    ]);
  });
});
