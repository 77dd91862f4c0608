import { expect, test } from 'vitest';
import { counted, sized } from './counted.ts';

test.each([
  [counted(0, 'row'), '0 rows'],
  [counted(1, 'row'), '1 row'],
  [sized(1), '1 KiB'],
  [sized(1024 * 1024 - 1), '1024 KiB'],
  [sized(3.25 * 1024 * 1024), '3.3 MiB'],
])('formats counts and sizes: %s', (said, expected) => {
  expect(said).toBe(expected);
});
