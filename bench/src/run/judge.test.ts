import { describe, expect, test } from 'vitest';
import type { Bar } from './bars.ts';
import { finite, judge, notJudged, verdictLine } from './judge.ts';

const bar = (compare: Bar['compare'], limit: number): Bar => ({ what: 'p99', compare, limit, unit: 'ms' });

describe('judge', () => {
  test.each([
    ['≤', 20, true],
    ['≤', 20.1, false],
    ['≥', 20, true],
    ['≥', 19.9, false],
    ['<', 19.9, true],
    ['<', 20, false],
  ] as const)('judges a bar %s 20 with the value %d: %s', (compare, value, met) => {
    expect(judge(bar(compare, 20), value)).toMatchObject({ value, met, reason: null });
  });

  test('a figure without a value, without a finite value, or missing is not judged', () => {
    expect(judge(bar('≤', 20), notJudged('no server'))).toMatchObject({ value: null, met: null, reason: 'no server' });
    expect(judge(bar('≤', 20), Number.NaN).met).toBeNull();
    expect(judge(bar('≤', 20), Number.NEGATIVE_INFINITY).met).toBeNull();
    expect(judge(bar('≤', 20), undefined).reason).toBe('the bench returned no figure');
  });

  test('a figure without a finite value survives JSON', () => {
    expect(JSON.parse(JSON.stringify(finite(Number.NaN)))).toEqual(notJudged('the measured value is NaN'));
    expect(finite(3)).toBe(3);
  });

  test('a verdict line contains the value, the bar, and the verdict or its reason', () => {
    expect(verdictLine(judge(bar('≤', 20), 21))).toBe('bar p99: 21.0 (≤ 20 ms) MISSED');
    expect(verdictLine(judge(bar('≤', 20), 19))).toBe('bar p99: 19.0 (≤ 20 ms) met');
    expect(verdictLine(judge(bar('≤', 20), notJudged('no server')))).toBe('bar p99: (≤ 20 ms) NOT JUDGED: no server');
  });
});
