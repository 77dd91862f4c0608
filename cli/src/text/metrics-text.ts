import { type MeasureName, measureNames, type Sample } from '@muster/protocol';
import { bytesText } from '../../../client/src/byte-text.ts';
import { bar, byShare, type Glyphs, type Point, sparkline } from './sparkline.ts';
import { counted, type Style, timestamp } from './style.ts';

/** Pure functions that render metrics. */

const percent = (value: number): string => `${Math.round(value)} %`;

/** Returns the used share of a total, from 0 to 1; null if either is unknown. */
export const shareOf = (used: number | null, total: number | null): number | null =>
  used === null || total === null || total === 0 ? null : used / total;

/** Returns a table cell for a share: a bar if there is space, and the percentage. */
export function shareCell(share: number | null, cells: number, glyphs: Glyphs): string {
  if (share === null) return glyphs.none;
  const text = percent(share * 100).padStart(5);
  return cells === 0 ? text.trim() : `${bar(share, cells, glyphs)} ${text}`;
}

/** A period that is split into columns. Times are Unix seconds. */
export interface Window {
  readonly from: number;
  /** Duration of one column in seconds. */
  readonly step: number;
  readonly columns: number;
}

/**
 * Splits the period up to the current time into columns that fit. Each column is longer than the interval between
 * samples, so that a healthy machine leaves no gap.
 * @param since length of the period in seconds
 * @param interval seconds between two samples; null if unknown
 */
export function cutTime(since: number, now: number, columns: number, interval: number | null): Window {
  const step = Math.max(1, Math.ceil(since / columns), Math.ceil((interval ?? 0) * 1.5));
  const count = Math.min(columns, Math.max(1, Math.ceil(since / step)));
  return { from: Math.floor(now / step) * step - (count - 1) * step, step, columns: count };
}

/** Returns the median number of seconds between two samples; null for fewer than two samples. */
export function medianInterval(samples: readonly Pick<Sample, 'collected_at'>[]): number | null {
  const apart = samples
    .slice(1)
    .map(({ collected_at }, at) => collected_at - (samples[at]?.collected_at ?? collected_at))
    .toSorted((a, b) => a - b);
  return apart[Math.floor(apart.length / 2)] ?? null;
}

/**
 * Returns the last sample of each column; undefined for a column without samples. Includes one column before the
 * period, because the rate of a counter needs two values.
 */
function columnsOf({ from, step, columns }: Window, samples: readonly Sample[]): (Sample | undefined)[] {
  const cells: (Sample | undefined)[] = Array.from({ length: columns + 1 });
  for (const sample of samples) {
    const at = Math.floor((sample.collected_at - from) / step) + 1;
    if (at >= 0 && at <= columns) cells[at] = sample;
  }
  return cells;
}

/** Returns the rate of a counter in each column, per second. Null after a gap or a counter reset. */
function rates(cells: readonly (Sample | undefined)[], name: MeasureName, step: number): Point[] {
  return cells.slice(1).map((sample, at) => {
    if (sample === undefined) return undefined;
    const before = cells[at]?.[name];
    const value = sample[name];
    return typeof before !== 'number' || value === null || value < before ? null : (value - before) / step;
  });
}

interface Row {
  readonly name: string;
  readonly points: readonly Point[];
  readonly text: (value: number) => string;
  /** The value at the top of the scale; null to use the highest point. */
  readonly full: number | null;
  readonly of: string;
  /** Minimum for the top of the scale if `full` is null, so that tiny values look tiny. */
  readonly floor?: number;
}

function rowsOf(window: Window, samples: readonly Sample[], cpus: number | null): Row[] {
  const cells = columnsOf(window, samples);
  const newest = samples.at(-1);
  const of = (name: MeasureName): Point[] =>
    cells.slice(1).map((sample) => (sample === undefined ? undefined : sample[name]));
  const total = (value: number | null | undefined) => ({
    full: value ?? null,
    of: typeof value === 'number' ? bytesText(value) : '',
  });
  const rate = (name: string, measure: MeasureName): Row => ({
    name,
    points: rates(cells, measure, window.step),
    text: (value) => `${bytesText(value)}/s`,
    full: null,
    of: '',
    floor: 1024,
  });
  return [
    { name: 'cpu', points: of('cpu_usage'), text: percent, full: 100, of: '' },
    { name: 'memory', points: of('memory_used'), text: bytesText, ...total(newest?.memory_total) },
    { name: 'disk', points: of('disk_used'), text: bytesText, ...total(newest?.disk_total) },
    {
      name: 'load',
      points: of('load1'),
      text: (value) => value.toFixed(2),
      full: cpus,
      of: cpus === null ? '' : counted(cpus, 'cpu'),
      floor: 1,
    },
    rate('net in', 'net_rx_bytes'),
    rate('net out', 'net_tx_bytes'),
  ];
}

const labelWidth = 9;
const cellWidth = 11;
const maxColumns = 120;

/** Returns the headings of the figures at the end of a row. A narrow terminal has fewer. */
const figuresFor = (width: number): readonly string[] =>
  width >= 100
    ? ['NOW', 'LOWEST', 'HIGHEST', 'OF']
    : width >= 70
      ? ['NOW', 'HIGHEST', 'OF']
      : width >= 50
        ? ['NOW', 'HIGHEST']
        : ['NOW'];

/** Returns the number of columns that fit into a line of this width. */
export const columnsFor = (width: number | null): number =>
  Math.min(maxColumns, (width ?? 100) - labelWidth - figuresFor(width ?? 100).length * cellWidth);

/**
 * Renders one row per measure, with the oldest sample on the left.
 * @param cpus number of CPUs of the machine, which is the top of the scale for load; null if unknown
 */
export function renderSeries(
  window: Window,
  samples: readonly Sample[],
  style: Style,
  { glyphs, cpus }: { glyphs: Glyphs; cpus: number | null },
): string {
  const { color, width } = style;
  const figures = figuresFor(width ?? 100);
  const head = ''.padEnd(labelWidth + window.columns) + figures.map((name) => name.padStart(cellWidth)).join('');
  const lines = rowsOf(window, samples, cpus).map(({ name, points, text, full, of, floor = 0 }) => {
    const numbers = points.filter((point) => typeof point === 'number');
    const max = full ?? Math.max(...numbers, floor, Number.MIN_VALUE);
    const last = points.findLast((point) => point !== undefined);
    const said = (value: Point) => (typeof value === 'number' ? text(value) : glyphs.none);
    const cell: Readonly<Record<string, string>> = {
      NOW: said(last),
      LOWEST: said(numbers.length === 0 ? null : Math.min(...numbers)),
      HIGHEST: said(numbers.length === 0 ? null : Math.max(...numbers)),
      OF: of,
    };
    const share = full === null || typeof last !== 'number' ? null : last / full;
    const paint = byShare(share, color);
    const behind = figures.map((figure) => {
      const padded = (cell[figure] ?? '').padStart(cellWidth);
      return figure === 'NOW' ? paint(padded) : padded;
    });
    return `${name.padEnd(labelWidth)}${color.cyan(sparkline(points, { min: 0, max }, glyphs))}${behind.join('')}`;
  });
  return [color.bold(head), ...lines].map((line) => line.trimEnd()).join('\n');
}

/** Formats a sample as one line of text, for output to a pipe. */
export function sampleLine(sample: Sample, glyphs: Glyphs): string {
  const { cpu_usage, memory_used, memory_total, disk_used, disk_total, load1 } = sample;
  const share = (value: number | null) => (value === null ? glyphs.none : percent(value * 100));
  return [
    timestamp(sample.collected_at),
    `cpu ${cpu_usage === null ? glyphs.none : percent(cpu_usage)}`,
    `memory ${share(shareOf(memory_used, memory_total))}`,
    `disk ${share(shareOf(disk_used, disk_total))}`,
    `load ${load1 === null ? glyphs.none : load1.toFixed(2)}`,
  ].join('  ');
}

export const csvHead = ['collected_at', ...measureNames].join(',');

/** Formats a sample as a line of CSV. A measure without a value becomes an empty field. */
export const csvLine = (sample: Sample): string =>
  [sample.collected_at, ...measureNames.map((name) => sample[name] ?? '')].join(',');
