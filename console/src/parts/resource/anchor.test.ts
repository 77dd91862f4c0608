import { expect, test } from 'vitest';
import { type Anchor, anchorText, readAnchor } from './anchor.ts';

const anchors: readonly [Anchor, string][] = [
  [{ resource: 'motd//etc/motd', part: 'diff', line: null }, 'r=motd//etc/motd'],
  [{ resource: 'motd//etc/motd', part: 'diff', line: 'L12' }, 'r=motd//etc/motd&L12'],
  [{ resource: 'motd//etc/motd', part: 'diff', line: 'B3' }, 'r=motd//etc/motd&B3'],
  [{ resource: 'site/deploy', part: 'stderr', line: 'L3' }, 'r=site/deploy&stderr&L3'],
  [{ resource: 'a/100% & #1?', part: 'diff', line: null }, 'r=a/100%25%20%26%20%231%3F'],
];

test.each(anchors)('formats %o as %s and parses it back', (anchor, text) => {
  expect(anchorText(anchor)).toBe(text);
  expect(readAnchor(text)).toEqual(anchor);
});

test('escapes an identity with an unpaired surrogate', () => {
  expect(readAnchor(anchorText({ resource: 'm/\ud800', part: 'diff', line: null }))?.resource).toBe('m/\ufffd');
});

test.each(['', 'content', 'L12', 'r=%E0%A4%A'])('finds no anchor in %j', (text) => {
  expect(readAnchor(text)).toBeNull();
});

test('ignores fragment parts that are not a line number', () => {
  expect(readAnchor('r=a/b&L&L1234567890&Lx')).toEqual({ resource: 'a/b', part: 'diff', line: null });
});
