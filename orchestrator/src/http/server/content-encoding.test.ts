import { expect, test } from 'vitest';
import { chooseEncoding } from './content-encoding.ts';

test.each([
  [undefined, null],
  ['', null],
  ['gzip', 'gzip'],
  ['gzip, deflate, br, zstd', 'br'],
  ['GZIP;q=1.0, BR;q=0.5', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['br;q=0, gzip;q=0.0', null],
  ['*', 'br'],
  ['*;q=0.5, br;q=0', 'gzip'],
  ['*;q=0', null],
  ['identity', null],
  ['identity;q=1, gzip;q=0.5', null],
  ['gzip;q=nonsense', null],
  ['gzip;q=7', null],
  ['xgzip, brotli', null],
  ['gzip ; q=0.3 , br ; q=0.2', 'gzip'],
])('chooses the best available encoding from %j', (accepted, chosen) => {
  expect(chooseEncoding(accepted, ['br', 'gzip'])).toBe(chosen);
});

test('chooses the identity encoding if no other encoding is available', () => {
  expect(chooseEncoding('br', [])).toBe(null);
});
