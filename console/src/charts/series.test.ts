import type { Sample } from '@muster/protocol';
import { describe, expect, it } from 'vitest';
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
  it('are shares and rates', () => {
    const { times, values } = linesOf([sample(60), sample(120), sample(180)], 60);
    expect(times).toEqual([60, 120, 180]);
    expect(values.memory).toEqual([25, 25, 25]);
    expect(values.disk).toEqual([null, null, null]);
    expect(values.received).toEqual([null, 100, 100]);
  });

  it('break where nothing was measured, and not where a sample is a little late', () => {
    const { times, values } = linesOf([sample(60), sample(190), sample(600)], 60);
    expect(times).toEqual([60, 190, 250, 600]);
    expect(values.cpu).toEqual([10, 10, null, 10]);
    expect(values.received).toEqual([null, 100, null, null]);
  });

  it('are whole, with rates, of an agent that measures less often than is asked for, and break where it did not', () => {
    const { times, values } = linesOf(
      [300, 600, 905, 1_200, 3_000, 3_300].map((at) => sample(at)),
      60,
    );
    expect(times).toEqual([300, 600, 905, 1_200, 1_500, 3_000, 3_300]);
    expect(values.received).toEqual([null, 100, 100, 100, null, null, 100]);
    // Two that are far apart say nothing of how often it measures.
    expect(linesOf([sample(60), sample(86_400)], 60).times).toEqual([60, 120, 86_400]);
  });

  it('have no rate where a counter began anew', () => {
    const { values } = linesOf([sample(60), sample(120, { net_rx_bytes: 5 }), sample(180, { net_rx_bytes: 605 })], 60);
    expect(values.received).toEqual([null, null, 10]);
  });

  it('have the rate of the time between the samples, where a bucket tells only of its beginning', () => {
    const at = (collected_at: number, uptime: number) =>
      sample(collected_at, { uptime, net_rx_bytes: uptime * 100, net_tx_bytes: uptime * 7 });
    const { values } = linesOf([at(0, 240), at(300, 480), at(600, 840)], 300);
    expect(values.received).toEqual([null, 100, 100]);
    expect(values.sent).toEqual([null, 7, 7]);
  });

  it('come to the least, the mean, the most and the last', () => {
    expect(outlineOf([1, null, 4, 1])).toEqual({ min: 1, average: 2, max: 4, last: 1 });
    expect(outlineOf([null])).toBeNull();
  });
});

describe('a range', () => {
  it.each([
    [3_600, 60],
    [6 * 3_600, 60],
    [86_400, 300],
    [7 * 86_400, 1_800],
    [30 * 86_400, 7_200],
    [10 * 365 * 86_400, 86_400],
  ])('of %i s is asked for in steps of %i s', (range, step) => {
    expect(stepFor(range)).toBe(step);
  });
});

describe('an amount', () => {
  it.each([
    [37.04, '%', '37%'],
    [8.4, '%', '8.4%'],
    [0.423, '', '0.42'],
    [143, '', '143'],
    [0, 'B/s', '0 B/s'],
    [1_234_567, 'B/s', '1.23 MB/s'],
    [12_300_000_000, 'B', '12.3 GB'],
    [null, 'B', '–'],
  ] as const)('%s %s is %s', (value, unit, text) => {
    expect(amountText(value, unit)).toBe(text);
  });
});

it('a scale of zeros, or of nothing, has steps that are told apart', () => {
  expect([topOf(50, 'B'), topOf(0, 'B/s'), topOf(null, 'B'), topOf(0, '')]).toEqual([50 * 1.1, 1_000, 1_000, 1]);
});

it('a value between gaps is found, the only one too', () => {
  expect([aloneAt([1]), aloneAt([]), aloneAt([1, 2, null, 3, null, null, 4]), aloneAt([null, 0, null])]).toEqual([
    ...[[0], [], [3, 6], [1]],
  ]);
});
