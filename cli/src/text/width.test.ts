import fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { cutTo, wrapWords } from './width.ts';

test.each([
  ['fits', 'web-1', 5, 'web-1'],
  ['is cut', 'web-10', 5, 'web-…'],
  ['is wide', '東京都', 4, '東…'],
  ['is coloured', '\u001b[31mfailed\u001b[39m here', 4, '\u001b[31mfai…\u001b[0m'],
])('what %s', (_, text, width, cut) => {
  expect(cutTo(text, width)).toBe(cut);
});

test('nothing is ever wider than asked for', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 40 }), (text, width) => {
      expect(stringWidth(cutTo(text, width))).toBeLessThanOrEqual(Math.max(width, 1));
    }),
  );
});

test('words wrap, and a word that is too long stays whole', () => {
  expect(wrapWords('Plan: 2 to create, 1 to update', 16, '  ')).toBe('Plan: 2 to\n  create, 1 to\n  update');
  expect(wrapWords('a verylongwordindeed b', 8, ' ')).toBe('a\n verylongwordindeed\n b');
});
