import { expect, test } from 'vitest';
import { parseChoice, parseCount, parseDuration, parseTag } from './values.ts';

test.each([
  ['role=web', { key: 'role', value: 'web' }],
  ['a=b=c', { key: 'a', value: 'b=c' }],
  ['a=', { key: 'a', value: '' }],
])('%s is a tag', (text, parsed) => {
  expect(parseTag(text)).toEqual(parsed);
});

test.each([
  ['90', 90],
  ['90s', 90],
  ['30m', 1800],
  ['12h', 43_200],
  ['7d', 604_800],
  ['2w', 1_209_600],
])('%s is %i seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});

test.each([
  () => parseTag('role'),
  () => parseTag('=web'),
  () => parseDuration('soon'),
  () => parseDuration('1.5h'),
  () => parseDuration('-1s'),
  () => parseCount('--limit', '0', 1, 500),
  () => parseCount('--limit', '501', 1, 500),
  () => parseCount('--limit', '1e2', 1, 500),
  () => parseChoice('--kind', 'drift', ['apply', 'plan']),
])('%s is a usage error with what to type instead', (parse) => {
  expect(parse).toThrow(expect.objectContaining({ code: 'usage', exit: 2, remedy: expect.any(String) }));
});
