import { expect, test } from 'vitest';
import { bytesText } from './byte-text.ts';

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 KiB'],
  [1536, '1.5 KiB'],
  [1_234_567, '1.2 MiB'],
  [42_949_672_960, '40.0 GiB'],
  [180 * 1024 ** 3, '180 GiB'],
  [2 ** 70, '1048576 PiB'],
])('formats %d bytes as %s', (amount, text) => {
  expect(bytesText(amount)).toBe(text);
});
