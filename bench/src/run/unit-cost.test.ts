import { expect, test } from 'vitest';
import { medians, perSecond, perThing, perUnit } from './unit-cost.ts';

const before = { at: 100, counters: { cpuSecs: 10, rows: 1_000 } };
const after = { at: 110, counters: { cpuSecs: 16, rows: 1_500 } };

test('returns the increase of each counter per second', () => {
  expect(perSecond(before, after)).toEqual({ cpuSecs: 0.6, rows: 50 });
});

test('the cost of a unit of work excludes what happens without the work', () => {
  expect(perUnit(before, after, { cpuSecs: 0.2, rows: 10 }, 40)).toEqual({ cpuSecs: 0.1, rows: 10 });
});

test('the cost of a thing excludes what happens without any of them', () => {
  expect(perThing({ cpuSecs: 0.6, rows: 50 }, { cpuSecs: 0.1, rows: 0 }, 10)).toEqual({ cpuSecs: 0.05, rows: 5 });
});

test('returns the median of each counter', () => {
  const rounds = [
    { cpuSecs: 3, rows: 1 },
    { cpuSecs: 1, rows: 9 },
    { cpuSecs: 2, rows: 5 },
  ];
  expect(medians(rounds)).toEqual({ cpuSecs: 2, rows: 5 });
});
