import { describe, expect, test } from 'vitest';
import { lastLine, newText } from './output-text.ts';

describe('output that is asked for again', () => {
  test('adds what is new, also where its beginning is no longer there', () => {
    expect(newText('', 'a')).toBe('a');
    expect(newText('a', 'a')).toBe('');
    expect(newText('one\n', 'one\ntwo')).toBe('two');
    const lines = Array.from({ length: 400 }, (_, i) => `line ${i}\n`);
    const before = lines.slice(0, 300).join('');
    const now = `[… 900 bytes not shown while it runs …]\n${lines.slice(100).join('')}`;
    expect(newText(before, now)).toBe(lines.slice(300).join(''));
  });

  test('says so where something in between was never there', () => {
    expect(newText('one', 'three')).toBe('\n[…]\nthree');
    expect(newText('one\n', 'three')).toBe('[…]\nthree');
  });

  test('has a last line, whatever moves the cursor', () => {
    expect(lastLine('')).toBe('');
    expect(lastLine('one\n 10 %\r 20 %\r\n\n')).toBe('20 %');
  });
});
