import fc from 'fast-check';
import { expect, test } from 'vitest';
import { advance, checkpointBefore } from './playback.ts';
import { Recording } from './recording.ts';
import { TextLines } from './text-lines.ts';

const lines = [
  { version: 2, width: 100, height: 30 },
  [0.1, 'o', '$ ls\r\n'],
  [0.5, 'i', 'x'],
  [1, 'o', 'caf\ufffd\r\n'],
  [1, 'b', Buffer.from('caf\xe9\r\n', 'latin1').toString('base64')],
  [2, 'r', '120x40'],
  [2, 'r', '0x40'],
  [1.5, 'o', '\x1b[1mgrün\x1b[0m'],
];
const file = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n[3,"o","cut o`;

test('parses a recording the same way for every split into chunks', () => {
  const bytes = new TextEncoder().encode(file);
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length), { maxLength: 6 }), (cuts) => {
      const recording = new Recording();
      const offsets = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      for (const [index, from] of offsets.entries()) recording.feed(bytes.subarray(from, offsets[index + 1]));
      recording.end();
      expect(recording.size).toEqual({ cols: 100, rows: 30 });
      expect(recording.times).toEqual([0.1, 1, 2, 2]);
      expect(recording.events).toEqual([
        '$ ls\r\n',
        new Uint8Array([99, 97, 102, 0xe9, 13, 10]),
        { cols: 120, rows: 40 },
        '\x1b[1mgrün\x1b[0m',
      ]);
      expect(recording.text.texts).toEqual(['$ ls', 'caf\ufffd', 'grün']);
      expect(recording.text.times).toEqual([0.1, 1, 2]);
    }),
  );
});

test('counts the events up to a time', () => {
  const recording = new Recording();
  recording.feed(new TextEncoder().encode(`${file}\n`));
  expect([0, 0.1, 0.9, 1, 2, 99].map((at) => recording.countAt(at))).toEqual([0, 1, 1, 2, 4, 4]);
});

const textOf = (...pieces: string[]) => {
  const text = new TextLines();
  for (const [at, piece] of pieces.entries()) text.feed(at, piece);
  text.end();
  return text;
};

test.each([
  ['removes colors and titles', ['\x1b]0;evil\x07\x1b[31mred\x1b[m\n'], ['red']],
  ['removes a title that ends in the next chunk', ['a\x1b]0;ev', 'il\x1b', '\\b\n'], ['ab']],
  ['removes a color sequence that is split between chunks', ['a\x1b', '[3', '1mb\n'], ['ab']],
  ['keeps every state of a redrawn line', ['10%\r20%\r\n'], ['10%', '20%']],
  ['removes characters deleted by backspaces', ['lss\b \b\n'], ['ls']],
  ['starts a new line at a cursor movement', ['\x1b[2J\x1b[1;1Htop\x1b[5;3Hload'], ['top', 'load']],
  ['keeps a repeated line once', ['n\n', 'y\ny\ny\n', 'y\nz\n'], ['n', 'y', 'z']],
  [
    'keeps text after an unfinished sequence',
    [`x\x1b]0;${'a'.repeat(10_000)}`, 'found\n'],
    [expect.stringContaining('found')],
  ],
])('extracts the searchable text: %s', (_, pieces, expected) => {
  expect(textOf(...pieces).texts.slice(-expected.length)).toEqual(expected);
});

test('finds text and returns the time and an excerpt of its line', () => {
  const text = textOf('one\n', `${'x'.repeat(100)}Two\n`, 'two\n');
  expect(text.find('two', 0, 99, 10)).toEqual([
    { line: 1, at: 1, column: 100, excerpt: `${'x'.repeat(60)}Two`, from: 60 },
    { line: 2, at: 2, column: 0, excerpt: 'two', from: 0 },
  ]);
  expect(text.find('two', 0, 99, 1)).toHaveLength(1);
  expect(text.find('two', 2, 3, 9)).toHaveLength(1);
});

test.each([
  ['at normal speed', 1, { speed: 1, skipIdle: false, nextAt: 9, end: 20 }, 1.5],
  ['at 16 times the speed', 1, { speed: 16, skipIdle: false, nextAt: 9, end: 20 }, 9],
  ['skips a long pause', 1, { speed: 1, skipIdle: true, nextAt: 9, end: 20 }, 8.7],
  ['does not skip a short pause', 1, { speed: 1, skipIdle: true, nextAt: 1.9, end: 20 }, 1.5],
  ['stops at the end', 19.9, { speed: 4, skipIdle: false, nextAt: 20, end: 20 }, 20],
  ['skips a pause at the end', 15, { speed: 1, skipIdle: true, nextAt: null, end: 20 }, 20],
])('advances playback: %s', (_, position, options, expected) => {
  expect(advance(position, 0.5, options)).toBeCloseTo(expected);
});

test('finds the nearest checkpoint', () => {
  expect([0, 10, 25, 99].map((count) => checkpointBefore([10, 20, 30], count))).toEqual([-1, 0, 1, 2]);
});
