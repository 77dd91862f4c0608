import { describe, expect, test } from 'vitest';
import { atLeast, atMost, conclude, notJudged, ratioLine, table, verdictLine } from './report.ts';

describe('report', () => {
  test('a table aligns numbers to the right and text to the left', () => {
    expect(
      table(
        ['what', 'per second'],
        [
          ['a', 12345.6],
          ['longer', 1.234],
          ['none', null],
        ],
      ),
    ).toBe(
      [
        'what    per second',
        '------  ----------',
        'a           12,346',
        'longer        1.23',
        'none             -',
      ].join('\n'),
    );
  });

  test('a ratio line contains both figures and their ratio', () => {
    expect(ratioLine('units', 50, 100, 'a second')).toBe('units: 50.0 against 100 a second = 0.50 ×');
    expect(ratioLine('stall', 0.9, 200, 'ms')).toBe('stall: 0.90 against 200 ms = 0.0045 ×');
  });

  test('a value that equals its maximum or minimum meets the bar', () => {
    expect(atMost('p99', 20, 20, 'ms').met).toBe(true);
    expect(atMost('p99', 20.1, 20, 'ms').met).toBe(false);
    expect(atLeast('share', 0.5, 0.5, '×').met).toBe(true);
    expect(atLeast('share', 0.49, 0.5, '×').met).toBe(false);
    expect(verdictLine(atMost('p99', 21, 20, 'ms'))).toBe('bar p99: 21.0 (≤ 20.0 ms) MISSED');
    expect(verdictLine(notJudged('p99', '≤ 20 ms', 'no server'))).toBe('bar p99: (≤ 20 ms) NOT JUDGED: no server');
  });

  test('the exit code of a bench is 1 only for a missed bar', () => {
    expect(conclude('x', [atMost('p99', 1, 2, 'ms'), notJudged('y', '', 'why')], [])).toBe(0);
    expect(conclude('x', [atMost('p99', 3, 2, 'ms')], [])).toBe(1);
  });
});
