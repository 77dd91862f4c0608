import { expect, test } from 'vitest';
import { parseChoice, parseCount, parseDuration, parseMoment, parsePair, parseTag } from './values.ts';

test.each([
  ['role=web', { key: 'role', value: 'web' }],
  ['a=b=c', { key: 'a', value: 'b=c' }],
  ['a=', { key: 'a', value: '' }],
  ['canary', { key: 'canary', value: '' }],
])('parses the tag %s', (text, parsed) => {
  expect(parseTag(text)).toEqual(parsed);
});

test.each([
  ['90', 90],
  ['90s', 90],
  ['30m', 1800],
  ['12h', 43_200],
  ['7d', 604_800],
  ['2w', 1_209_600],
])('parses the duration %s as %i seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});

test('accepts an age, a day, a time, or UNIX seconds as a moment', () => {
  const now = 1_795_000_000.5;
  expect(parseMoment('2h', now)).toBe(1_795_000_000 - 7200);
  expect(parseMoment('2026-11-01T22:00:00Z', now)).toBe(Date.parse('2026-11-01T22:00:00Z') / 1000);
  expect(parseMoment('2026-11-01', now)).toBe(new Date(2026, 10, 1).getTime() / 1000);
  expect(parseMoment('1794990000', now)).toBe(1_794_990_000);
});

test('accepts a duration, a day, or a time as a start or end, and includes the day in an end', () => {
  const now = 1_795_000_000.5;
  const at = (...parts: [number, number, number]) => new Date(...parts).getTime() / 1000;
  expect(parseMoment('90d', now, 'until')).toBe(1_795_000_000 + 90 * 86_400);
  expect(parseMoment('2h', now, 'from')).toBe(1_795_000_000 + 7200);
  expect(parseMoment('2027-01-31', now, 'from')).toBe(at(2027, 0, 31));
  expect(parseMoment('2027-01-31', now, 'until')).toBe(at(2027, 1, 1));
  expect(parseMoment('2027-01-31T08:00:00Z', now, 'until')).toBe(Date.parse('2027-01-31T08:00:00Z') / 1000);
  expect(parseMoment('2027-01-31T08:00', now, 'until')).toBe(new Date(2027, 0, 31, 8).getTime() / 1000);
});

test.each([
  () => parseMoment('2026-02-30', 0, 'until'),
  () => parseMoment('999999999w', 0, 'until'),
  () => parseMoment('2026-02-30T08:00Z', 0),
  () => parseMoment('2026-12-01T25:00Z', 0),
  () => parseMoment('90', 0),
  () => parseMoment('yesterday', 0),
  () => parseMoment('2026-13-01', 0),
  () => parseTag('role web'),
  () => parseTag('1x'),
  () => parsePair('role'),
  () => parseTag('=web'),
  () => parseDuration('soon'),
  () => parseDuration('1.5h'),
  () => parseDuration('-1s'),
  () => parseCount('--limit', '0', 1, 500),
  () => parseCount('--limit', '501', 1, 500),
  () => parseCount('--limit', '1e2', 1, 500),
  () => parseChoice('--kind', 'drift', ['apply', 'plan']),
])('refuses %s, and suggests what to write instead', (parse) => {
  expect(parse).toThrow(expect.objectContaining({ code: 'usage', exit: 2, remedy: expect.any(String) }));
});
