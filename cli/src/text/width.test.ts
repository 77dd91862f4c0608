import fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { cutTo, wrapMessage, wrapWords } from './width.ts';

test.each([
  ['text that fits', 'web-1', 5, 'web-1'],
  ['long text', 'web-10', 5, 'web-…'],
  ['wide text', '東京都', 4, '東…'],
  ['colored text', '\u001b[31mfailed\u001b[39m here', 4, '\u001b[31mfai…\u001b[0m'],
])('truncates %s to its width', (_, text, width, cut) => {
  expect(cutTo(text, width)).toBe(cut);
});

test('never returns text wider than requested when truncating', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 40 }), (text, width) => {
      expect(stringWidth(cutTo(text, width))).toBeLessThanOrEqual(Math.max(width, 1));
    }),
  );
});

test('wraps at spaces, and keeps long words whole', () => {
  expect(wrapWords('Plan: 2 to create, 1 to update', 16, '  ')).toBe('Plan: 2 to\n  create, 1 to\n  update');
  expect(wrapWords('a verylongwordindeed b', 8, ' ')).toBe('a\n verylongwordindeed\n b');
});

test('wraps prose, and keeps indented lines and a command at the end', () => {
  const text =
    'hint: Compare the two fingerprints, then: muster login --fingerprint 9F:86\n  an indented line that is long';
  expect(wrapMessage(text, 30)).toBe(
    'hint: Compare the two\n  fingerprints, then:\n  muster login --fingerprint 9F:86\n  an indented line that is long',
  );
  expect(wrapMessage('To see it: muster agents show web-1. Or add --queue.', 30)).toBe(
    'To see it: muster agents show\n  web-1. Or add --queue.',
  );
  expect(wrapMessage(text, null)).toBe(text);
});
