import type { Sample } from '@muster/protocol';
import { describe, expect, test } from 'vitest';
import { aloneAt, amountText, linesOf, outlineOf, stepFor, topOf } from './series.ts';

const sample = (collected_at: number, parts: Partial<Sample> = {}): Sample => ({
  collected_at,
  cpu_usage: 10,
  memory_total: 1_000,
  memory_used: 250,
  swap_used: 0,
  disk_total: null,
  disk_used: 5,
  load1: 0.5,
  net_rx_bytes: collected_at * 100,
  net_tx_bytes: 0,
  processes: 100,
  uptime: null,
  ...parts,
});

describe('lines of samples', () => {
  test('computes percentages and rates', () => {
    const { times, values } = linesOf([sample(60), sample(120), sample(180)], 60);
    expect(times).toEqual([60, 120, 180]);
    expect(values.memory).toEqual([25, 25, 25]);
    expect(values.disk).toEqual([null, null, null]);
    expect(values.received).toEqual([null, 100, 100]);
  });

  test('breaks a line at a gap, but not at a late sample', () => {
    const { times, values } = linesOf([sample(60), sample(190), sample(600)], 60);
    expect(times).toEqual([60, 190, 250, 600]);
    expect(values.cpu).toEqual([10, 10, null, 10]);
    expect(values.received).toEqual([null, 100, null, null]);
  });

  test('does not break the line of an agent that sends samples less often than requested', () => {
    const { times, values } = linesOf(
      [300, 600, 905, 1_200, 3_000, 3_300].map((at) => sample(at)),
      60,
    );
    expect(times).toEqual([300, 600, 905, 1_200, 1_500, 3_000, 3_300]);
    expect(values.received).toEqual([null, 100, 100, 100, null, null, 100]);
    // The sample interval of an agent cannot be determined from two samples.
    expect(linesOf([sample(60), sample(86_400)], 60).times).toEqual([60, 120, 86_400]);
  });

  test('omits the rate after a counter was reset', () => {
    const { values } = linesOf([sample(60), sample(120, { net_rx_bytes: 5 }), sample(180, { net_rx_bytes: 605 })], 60);
    expect(values.received).toEqual([null, null, 10]);
  });

  test('computes rates from the uptime if buckets have only a start time', () => {
    const at = (collected_at: number, uptime: number) =>
      sample(collected_at, { uptime, net_rx_bytes: uptime * 100, net_tx_bytes: uptime * 7 });
    const { values } = linesOf([at(0, 240), at(300, 480), at(600, 840)], 300);
    expect(values.received).toEqual([null, 100, 100]);
    expect(values.sent).toEqual([null, 7, 7]);
  });

  test('summarizes the minimum, average, maximum, and last value of a line', () => {
    expect(outlineOf([1, null, 4, 1])).toEqual({ min: 1, average: 2, max: 4, last: 1 });
    expect(outlineOf([null])).toBeNull();
  });
});

describe('a range', () => {
  test.each([
    [3_600, 60],
    [6 * 3_600, 60],
    [86_400, 300],
    [7 * 86_400, 1_800],
    [30 * 86_400, 7_200],
    [10 * 365 * 86_400, 86_400],
  ])('divides a range of %i s into steps of %i s', (range, step) => {
    expect(stepFor(range)).toBe(step);
  });
});

describe('an amount', () => {
  test.each([
    [37.04, '%', '37%'],
    [8.4, '%', '8.4%'],
    [0.423, '', '0.42'],
    [143, '', '143'],
    [0, 'B/s', '0 B/s'],
    [1_234_567, 'B/s', '1.2 MiB/s'],
    [12_300_000_000, 'B', '11.5 GiB'],
    [null, 'B', '–'],
  ] as const)('formats %s %s as %s', (value, unit, text) => {
    expect(amountText(value, unit)).toBe(text);
  });
});

test('chooses an axis maximum with distinct labels if all values are zero', () => {
  expect([topOf(50, 'B'), topOf(0, 'B/s'), topOf(null, 'B'), topOf(0, '')]).toEqual([50 * 1.1, 1_024, 1_024, 1]);
});

test('finds single values between two gaps', () => {
  expect([aloneAt([1]), aloneAt([]), aloneAt([1, 2, null, 3, null, null, 4]), aloneAt([null, 0, null])]).toEqual([
    ...[[0], [], [3, 6], [1]],
  ]);
});
