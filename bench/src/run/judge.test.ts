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

  test('does not judge a figure that is missing or has no finite value', () => {
    expect(judge(bar('≤', 20), notJudged('no server'))).toMatchObject({ value: null, met: null, reason: 'no server' });
    expect(judge(bar('≤', 20), Number.NaN).met).toBeNull();
    expect(judge(bar('≤', 20), Number.NEGATIVE_INFINITY).met).toBeNull();
    expect(judge(bar('≤', 20), undefined).reason).toBe('the bench returned no figure');
  });

  test('keeps a figure without a finite value when it is serialized as JSON', () => {
    expect(JSON.parse(JSON.stringify(finite(Number.NaN)))).toEqual(notJudged('the measured value is NaN'));
    expect(finite(3)).toBe(3);
  });

  test('prints the value, the bar, and the verdict or its reason in one line', () => {
    expect(verdictLine(judge(bar('≤', 20), 21))).toBe('bar p99: 21.0 (≤ 20 ms) MISSED');
    expect(verdictLine(judge(bar('≤', 20), 19))).toBe('bar p99: 19.0 (≤ 20 ms) met');
    expect(verdictLine(judge(bar('≤', 20), notJudged('no server')))).toBe('bar p99: (≤ 20 ms) NOT JUDGED: no server');
  });
});
