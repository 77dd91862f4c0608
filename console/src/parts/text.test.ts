import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codePoint } from '../../../protocol/test/code-point.ts';
import { cutText, divideLine, lineText, visibleText } from './text.tsx';

test.each([
  ['control sequences', '\x1b[31mred\x07', '⟨1B⟩[31mred⟨07⟩'],
  ['bidirectional marks', 'a\u202egpj.exe', 'a⟨202E⟩gpj.exe'],
  ['zero-width characters', 'a\u200bb\u3164c\ufeff', 'a⟨200B⟩b⟨3164⟩c⟨FEFF⟩'],
  ['line separators', 'a\u2028b\r\n', 'a⟨2028⟩b⟨0D⟩\n'],
  ['characters beyond the first plane', 'a\u{e0041}', 'a⟨E0041⟩'],
  ['nothing in visible text', '<b>é 漢字 🙂\t&amp;</b>\n', '<b>é 漢字 🙂\t&amp;</b>\n'],
])('shows invisible characters as codes: %s', (_, text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

test('makes invisible characters visible in any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), (text) => {
      expect(visibleText(text)).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}]/u);
    }),
  );
});

test('truncates text without splitting a character', () => {
  expect([cutText('abc', 3), cutText('abcd', 3), cutText('ab🙂d', 3), cutText('ab🙂d', 4)]).toEqual([
    'abc',
    'abc',
    'ab',
    'ab🙂',
  ]);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 20 }), (text, maxLength) => {
      const cut = cutText(text, maxLength);
      expect(text.startsWith(cut) && cut.length <= maxLength && cut.isWellFormed()).toBe(true);
    }),
  );
});

test('appends an ellipsis only to a truncated line', () => {
  expect(lineText('two  words\n', 20)).toBe('two words ');
  expect(lineText('x'.repeat(65_536), 3)).toBe('xxx…');
  expect(lineText('a\u202eb', 20)).toBe('a⟨202E⟩b');
});

test.each([
  ['/etc/motd', ['/etc/motd', '']],
  ['/srv/application/workshop/greeting.txt', ['/srv/application/workshop', '/greeting.txt']],
  ['/srv/application/a-file-with-a-very-long-name.txt', ['/srv/application/a-file-wit', 'h-a-very-long-name.txt']],
  ['/srv/application/workshop/folder/', ['/srv/application/workshop', '/folder/']],
])('keeps the end of %s if the line is truncated', (line, parts) => {
  expect(divideLine(line)).toEqual(parts);
});
