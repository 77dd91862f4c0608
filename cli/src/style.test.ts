import { expect, test } from 'vitest';
import { ago, duration } from './style.ts';

test.each([
  [0, '0s'],
  [59, '59s'],
  [216, '3m 36s'],
  [180, '3m'],
  [959, '15m'],
  [7199, '1h 59m'],
  [7200, '2h'],
  [86_400 + 30, '1d'],
  [90_000, '1d 1h'],
])('%i seconds are %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test('how long ago is told roughly', () => {
  expect(ago(1000, 1004)).toBe('just now');
  expect(ago(1000, 1000 + 7199)).toBe('1h ago');
});
