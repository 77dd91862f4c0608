import { expect, test } from 'vitest';
import { longestOf, outputLines } from './ansi.ts';

const textOf = (text: string) => outputLines(text).map((line) => line.map((span) => span.text).join(''));

test('splits lines with and without a final line feed', () => {
  expect(textOf('')).toEqual([]);
  expect(textOf('a\nb\n')).toEqual(['a', 'b']);
  expect(textOf('a\r\n\nb')).toEqual(['a', '', 'b']);
});

test('keeps a color across lines until it changes', () => {
  expect(outputLines('a \x1b[1;31mred\nstill\x1b[0m not')).toEqual([
    [
      { text: 'a ', tone: null, bold: false },
      { text: 'red', tone: 'bad', bold: true },
    ],
    [
      { text: 'still', tone: 'bad', bold: true },
      { text: ' not', tone: null, bold: false },
    ],
  ]);
});

test('skips the parameters of a 256-color code', () => {
  expect(outputLines('\x1b[38;5;1mx\x1b[48;2;1;31;32my')).toEqual([
    [
      { text: 'x', tone: null, bold: false },
      { text: 'y', tone: null, bold: false },
    ],
  ]);
});

test('keeps only the last state of a progress bar', () => {
  expect(textOf('10%\r50%\r100%\ndone')).toEqual(['100%', 'done']);
  expect(textOf('kept\r')).toEqual(['kept']);
  expect(textOf('\x1b[32m1\x1b[0m\r2')).toEqual(['2']);
});

test.each([
  ['a title', '\x1b]0;owned\x07after', 'after'],
  ['a title that never ends', 'before\x1b]0;owned', 'before'],
  ['a link', '\x1b]8;;https://example.invalid\x1b\\text\x1b]8;;\x1b\\', 'text'],
  ['the clipboard', '\x1b]52;c;AAAA\x07x', 'x'],
  ['a cleared screen', 'a\x1b[2J\x1b[Hb', 'ab'],
  ['a sequence cut in half', 'a\x1b[3', 'a'],
  ['a lone escape', 'a\x1b', 'a'],
  ['a choice of characters', '\x1b(Bx', 'x'],
])('ignores %s', (_, text, left) => {
  expect(textOf(text).join('|')).toBe(left);
});

test('keeps control characters that do not start an escape sequence', () => {
  expect(textOf('a\x07\x08b')).toEqual(['a\x07\x08b']);
});

test('reads a million escapes in linear time', () => {
  const before = process.cpuUsage().user;
  expect(textOf('\x1b]'.repeat(200_000))).toEqual([]);
  expect(textOf('\x1b[1;'.repeat(100_000)).length).toBeLessThan(2);
  expect(process.cpuUsage(undefined).user - before).toBeLessThan(10_000_000);
});

test('finds the longest of a million lines', () => {
  const lines = outputLines(`${'\n'.repeat(500_000)}abc\n\u001b[31mde\u001b[0mfgh\n`);
  expect([lines.length, longestOf(lines)]).toEqual([500_002, 5]);
});
