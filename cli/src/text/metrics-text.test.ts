import type { Sample } from '@muster/protocol';
import fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { style } from '../../test/examples.ts';
import { columnsFor, csvHead, csvLine, cutTime, medianInterval, renderSeries, shareCell } from './metrics-text.ts';
import { glyphsFor } from './sparkline.ts';

const glyphs = glyphsFor({});
const now = 1_795_000_000;
const gib = 1024 ** 3;

const sample = (fields: Partial<Sample>): Sample => ({
  collected_at: now,
  cpu_usage: 50,
  memory_total: 8 * gib,
  memory_used: 2 * gib,
  swap_used: 0,
  disk_total: 100 * gib,
  disk_used: 95 * gib,
  load1: 0.42,
  net_rx_bytes: 0,
  net_tx_bytes: 0,
  processes: 143,
  uptime: 864_000,
  ...fields,
});

describe('cutTime', () => {
  test('splits the period up to the current time into columns wider than the sample interval', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 60, max: 31_536_000 }),
        fc.integer({ min: 1, max: 120 }),
        fc.option(fc.integer({ min: 1, max: 3600 })),
        (since, columns, interval) => {
          const window = cutTime(since, now, columns, interval);
          expect(window.columns).toBeLessThanOrEqual(columns);
          expect(window.step).toBeGreaterThan((interval ?? 0) * 1.4);
          expect(window.from % window.step).toBe(0);
          const end = window.from + window.columns * window.step;
          expect(end).toBeGreaterThan(now);
          expect(end - window.step).toBeLessThanOrEqual(now);
          expect(window.columns * window.step).toBeGreaterThanOrEqual(since);
        },
      ),
    );
  });

  test('returns the median interval, even if samples are missing', () => {
    const at = (...times: number[]) => times.map((collected_at) => ({ collected_at }));
    expect(medianInterval(at(0, 30, 61, 90, 5000, 5031))).toBe(31);
    expect(medianInterval(at(7))).toBeNull();
  });
});

describe('renderSeries', () => {
  const window = { from: 1000, step: 100, columns: 6 };
  // Column 3 has no sample; the machine restarts before column 4; the CPU usage in column 5 is null.
  const samples = [
    sample({ collected_at: 900, net_rx_bytes: 1000 }),
    sample({ collected_at: 1000, cpu_usage: 0, net_rx_bytes: 1000 }),
    sample({ collected_at: 1100, cpu_usage: 100, net_rx_bytes: 103_400 }),
    sample({ collected_at: 1200, cpu_usage: 25, net_rx_bytes: 205_800 }),
    sample({ collected_at: 1400, net_rx_bytes: 500, cpu_usage: 50 }),
    sample({ collected_at: 1500, net_rx_bytes: 700, cpu_usage: null }),
  ];

  test('prints gaps as blanks, null as a dash, and counters as rates', () => {
    expect(renderSeries(window, samples, style({ width: 80 }), { glyphs, cpus: 4 })).toMatchInlineSnapshot(`
      "                       NOW    HIGHEST         OF
      cpu      ▁█▃ ▅–          –      100 %
      memory   ▃▃▃ ▃▃    2.0 GiB    2.0 GiB    8.0 GiB
      disk     ███ ██   95.0 GiB   95.0 GiB    100 GiB
      load     ▂▂▂ ▂▂       0.42       0.42     4 cpus
      net in   ▁██ –▁      2 B/s  1.0 KiB/s
      net out  ▁▁▁ –▁      0 B/s      0 B/s"
    `);
    const narrow = renderSeries(window, samples, style({ width: 40 }), { glyphs, cpus: 4 });
    expect(narrow).toContain('NOW');
    expect(narrow).not.toContain('HIGHEST');
  });

  test('highlights a nearly full disk', () => {
    const [, cpu, , disk] = renderSeries(window, samples.slice(0, 5), style({ colored: true }), {
      glyphs,
      cpus: 4,
    }).split('\n');
    expect(disk).toContain('\u001b[31m');
    expect(cpu).not.toContain('\u001b[31m');
  });

  test('fits charts of any samples into the terminal', () => {
    const amount = fc.option(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));
    const any = fc.record({
      collected_at: fc.integer({ min: 0, max: 20_000 }),
      cpu_usage: fc.option(fc.double({ min: 0, max: 100, noNaN: true })),
      memory_total: amount,
      memory_used: amount,
      swap_used: amount,
      disk_total: amount,
      disk_used: amount,
      load1: fc.option(fc.double({ min: 0, max: 1e4, noNaN: true })),
      net_rx_bytes: amount,
      net_tx_bytes: amount,
      processes: amount,
      uptime: amount,
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 40 }), fc.integer({ min: 40, max: 160 }), (some, width) => {
        const window = cutTime(3600, 18_000, columnsFor(width), 30);
        const ordered = some.toSorted((one, other) => one.collected_at - other.collected_at);
        for (const line of renderSeries(window, ordered, style({ width }), { glyphs, cpus: 4 }).split('\n'))
          expect(stringWidth(line)).toBeLessThanOrEqual(width);
      }),
    );
  });
});

test('prints a share as a bar with a percentage, or as a dash', () => {
  expect(shareCell(0.5, 10, glyphs)).toBe('█████░░░░░  50 %');
  expect(shareCell(0.5, 0, glyphs)).toBe('50 %');
  expect(shareCell(null, 10, glyphs)).toBe('–');
});

test('prints every measure as CSV, and empty fields for missing values', () => {
  expect(csvHead.split(',')).toHaveLength(12);
  expect(csvLine(sample({ cpu_usage: null, swap_used: null }))).toBe(
    '1795000000,,8589934592,2147483648,,107374182400,102005473280,0.42,0,0,143,864000',
  );
});
