import { describe, expect, test } from 'vitest';
import { lastLine, newText } from './output-text.ts';

describe('output that is polled', () => {
  test('returns the new part of the output, even if the beginning was dropped', () => {
    expect(newText('', 'a')).toBe('a');
    expect(newText('a', 'a')).toBe('');
    expect(newText('one\n', 'one\ntwo')).toBe('two');
    const lines = Array.from({ length: 400 }, (_, i) => `line ${i}\n`);
    const before = lines.slice(0, 300).join('');
    const now = `[… 900 bytes not shown while it runs …]\n${lines.slice(100).join('')}`;
    expect(newText(before, now)).toBe(lines.slice(300).join(''));
  });

  test('marks a gap between the shown and the new output', () => {
    expect(newText('one', 'three')).toBe('\n[…]\nthree');
    expect(newText('one\n', 'three')).toBe('[…]\nthree');
  });

  test('applies carriage returns and skips blank lines to find the last line', () => {
    expect(lastLine('')).toBe('');
    expect(lastLine('one\n 10 %\r 20 %\r\n\n')).toBe('20 %');
  });
});
