import { expect, test } from 'vitest';
import { gapClass } from './column-track.ts';

const columns = [
  { id: 'name' },
  { id: 'agents', align: 'right' },
  { id: 'run' },
  { id: 'took', align: 'right' },
  { id: 'age', align: 'right' },
] as const;

test('separates a text column from the numbers before it', () => {
  expect(columns.map(({ id }) => gapClass(columns, id) !== undefined)).toEqual([false, false, true, false, false]);
});
