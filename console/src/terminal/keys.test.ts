import { expect, test } from 'vitest';
import { extraKey, pasteable, runsAtOnce, withCtrl } from './keys.ts';

test('sends the same sequences as a keyboard for extra keys, in both cursor key modes', () => {
  expect([extraKey('esc', true), extraKey('tab', false), extraKey('up', false), extraKey('left', true)]).toEqual([
    '\x1b',
    '\t',
    '\x1b[A',
    '\x1bOD',
  ]);
});

test.each([
  ['c', '\x03'],
  ['D', '\x04'],
  ['[', '\x1b'],
  [' ', '\0'],
  ['?', '\x7f'],
  ['1', '1'],
  ['ls', 'ls'],
  ['é', 'é'],
])('maps Ctrl and %j to a control character if one exists', (typed, sent) => {
  expect(withCtrl(typed)).toBe(sent);
});

test('removes control characters from pasted text', () => {
  expect(pasteable('a\x1b[201~rm\x07 \x9b1A\tb\r\nc\rd')).toBe('a[201~rm 1A\tb\nc\nd');
});

test.each([
  ['ls', false],
  ['ls\n', true],
  ['a\rb', true],
])('detects whether pasting %j runs a command: %s', (text, expected) => {
  expect(runsAtOnce(text)).toBe(expected);
});
