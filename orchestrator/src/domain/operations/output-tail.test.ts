import { describe, expect, test } from 'vitest';
import { OutputTail } from './output-tail.ts';

const asItIs = (lines: string) => lines;
const piece = (from: number, text: string) => ({ from, to: from + Buffer.byteLength(text), text });

describe('output tail', () => {
  test('joins chunks of output, and marks gaps', () => {
    const tail = new OutputTail();
    expect([tail.text(null), tail.isCut]).toEqual(['', false]);
    tail.add(piece(0, 'one\ntw'));
    tail.add(piece(6, 'o\n'));
    expect([tail.text(null), tail.isCut]).toEqual(['one\ntwo\n', false]);
    tail.add(piece(100, 'ten\nelev'));
    expect(tail.text(null)).toBe('one\ntwo\n[… 92 bytes not shown while it runs …]\nten\nelev');
    expect(tail.isCut).toBe(true);
  });

  test('shows only whole lines if a partial line could reveal part of a secret', () => {
    const tail = new OutputTail();
    tail.add(piece(0, 'one\ntw'));
    tail.add(piece(100, 'en\neleven\ntwel'));
    expect(tail.text(asItIs)).toBe('one\n[… 94 bytes not shown while it runs …]\neleven\n');
    tail.add(piece(200, 'all in the middle'));
    expect(tail.text(asItIs)).not.toContain('all');
  });

  test('drops the earlier output when the program restarts', () => {
    const tail = new OutputTail();
    tail.add(piece(0, 'first run'));
    tail.add(piece(0, 'again'));
    expect(tail.text(null)).toBe('again');
  });

  test('keeps the newest 16 KiB of output, cut between characters', () => {
    const tail = new OutputTail();
    tail.add(piece(0, `${'x'.repeat(1_001)}`));
    let from = 1_001;
    for (let i = 0; i < 20; i++) {
      tail.add(piece(from, '😀'.repeat(600)));
      from += 2_400;
    }
    expect(tail.length).toBeLessThanOrEqual(16 * 1024);
    expect(tail.length).toBeGreaterThan(16 * 1024 - 2);
    expect(tail.isCut).toBe(true);
    const text = tail.text(null);
    const skipped = from - Buffer.byteLength(text.slice(text.indexOf('\n') + 1));
    expect(text).toMatch(new RegExp(`^\\[… ${skipped} bytes not shown while it runs …\\]\n(😀)+$`, 'u'));
    // The newest 16 KiB are kept even across a gap.
    tail.add(piece(from + 10, 'y'.repeat(16 * 1024)));
    expect(tail.text(null)).toBe(`[… ${from + 10} bytes not shown while it runs …]\n${'y'.repeat(16 * 1024)}`);
  });

  test('uses no more memory for many or empty chunks than for a single chunk', () => {
    const tail = new OutputTail();
    for (let i = 0; i < 1000; i++) tail.add({ from: 10 * i, to: 10 * i + 5, text: i % 2 === 0 ? '' : 'x' });
    expect(tail.length).toBe(64);
    expect(tail.text(null).split('\n').length).toBe(2 * 64);
  });
});
