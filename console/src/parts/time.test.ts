import { expect, test } from 'vitest';
import { milliseconds, relativeTime, shortDuration } from './time.tsx';

test.each([
  [0, '0s'],
  [59, '59s'],
  [60, '1m'],
  [3_599, '59m'],
  [3_600, '1h'],
  [86_400, '1d'],
  [59 * 86_400, '59d'],
  [61 * 86_400, '2mo'],
  [800 * 86_400, '2y'],
])('formats %s s as %s', (seconds, shown) => {
  expect(shortDuration(seconds)).toBe(shown);
});

test('formats past, future, and current times relative to now', () => {
  const now = 1_800_000_000_000;
  expect([
    relativeTime(now - 240_000, now),
    relativeTime(now + 10_800_000, now),
    relativeTime(now + 4_000, now),
    relativeTime(now + 15_000, now),
    relativeTime(now + 16_000, now),
  ]).toEqual(['4m ago', 'in 3h', 'now', 'now', 'in 16s']);
});

test('reads Unix seconds and RFC 3339 as milliseconds', () => {
  expect([milliseconds(1_800_000_000), milliseconds('2027-01-15T08:00:00Z')]).toEqual([
    1_800_000_000_000, 1_800_000_000_000,
  ]);
  expect(milliseconds('soon')).toBeNaN();
});
