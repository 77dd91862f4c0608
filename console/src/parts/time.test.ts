import { afterEach, expect, test } from 'vitest';
import { milliseconds, relativeTime, remainingTime, setClock, shortDuration, withLocalTimes } from './time.tsx';

afterEach(() => setClock(Date.now));

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

test.each([
  [45, '45s'],
  [3_590, '1h'],
  [5_340, '1h 29m'],
  [7_200, '2h'],
  [10_799, '3h'],
  [12_700, '4h'],
  [86_399, '1d'],
  [172_740, '2d'],
  [170_000, '1d 23h'],
  [15 * 86_400 + 82_800, '16d'],
  [50 * 86_400, '50d'],
])('formats %s remaining seconds as %s', (seconds, shown) => {
  expect(remainingTime(seconds)).toBe(shown);
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

/** Returns the RFC 3339 time of a local date and time. */
const utc = (local: string): string => new Date(local).toISOString();
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }).format(new Date('2026-12-03T12:00'));
const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' }).format(new Date('2026-11-30T14:05'));

test.each([
  ['with the time of day if it is today', 'at', '2026-11-30T14:05', `at ${time}`],
  ['with the date if it is another day', 'at', '2026-12-03T23:59:59.999', `on ${date}`],
  ['with the date and its own preposition', 'before', '2026-12-03T23:59:59.999', `before ${date}`],
])('shows a time in a sentence %s', (_, word, at, phrase) => {
  setClock(() => new Date('2026-11-30T09:00').getTime());
  expect(withLocalTimes(`tls_key expires ${word} ${utc(at)}`)).toBe(`tls_key expires ${phrase}`);
});

test('shows the date and the time of a time that no preposition precedes', () => {
  setClock(() => new Date('2026-12-03T09:00').getTime());
  const shown = withLocalTimes(utc('2026-12-03T14:05'));
  expect(shown).toContain(date);
  expect(shown).toContain(time);
});

test('keeps an impossible time', () => {
  expect(withLocalTimes('at 2026-99-99T99:99:99Z')).toBe('at 2026-99-99T99:99:99Z');
});
