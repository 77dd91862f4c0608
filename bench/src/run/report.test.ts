import { describe, expect, test } from 'vitest';
import { ratioLine, table } from './report.ts';

describe('report', () => {
  test('aligns numbers to the right and text to the left in a table', () => {
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

  test('prints both figures and their ratio in one line', () => {
    expect(ratioLine('units', 50, 100, 'a second')).toBe('units: 50.0 vs. 100 a second = 0.50 ×');
    expect(ratioLine('stall', 0.9, 200, 'ms')).toBe('stall: 0.90 vs. 200 ms = 0.0045 ×');
  });
});
