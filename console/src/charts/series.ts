import type { Sample } from '@muster/protocol';
import { bytesText } from '../../../client/src/byte-text.ts';

/**
 * Converts samples to chart lines: computes rates of counters, breaks lines where samples are missing, and summarizes
 * lines.
 */

/** Values on a line; null interrupts it. */
export type Values = (number | null)[];

export interface Lines {
  /** Unix seconds, ascending. */
  readonly times: readonly number[];
  readonly values: Readonly<Record<string, Values>>;
}

const maxPoints = 360;

/**
 * Returns the smallest bucket size in seconds that keeps a range within the maximum number of points. The minimum is a
 * minute, the default interval of agents.
 */
export function stepFor(seconds: number): number {
  const steps = [60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 86_400];
  return steps.find((step) => seconds / step <= maxPoints) ?? 86_400;
}

/** Maximum number of steps between two samples. More steps count as a gap. */
const gapSteps = 2.5;

/**
 * Returns the median distance between samples in seconds, because an agent may be configured to send samples less often
 * than requested.
 */
function medianStep(samples: readonly Sample[], step: number): number {
  const apart = samples.slice(1).map((sample, index) => sample.collected_at - (samples[index] as Sample).collected_at);
  // With fewer samples, the median cannot distinguish the interval from a gap.
  if (apart.length < 3) return step;
  const median = apart.sort((one, other) => one - other)[Math.floor((apart.length - 1) / 2)] as number;
  return Math.max(step, Math.min(median, 3_600));
}

/**
 * Returns the seconds between two samples. `collected_at` is the start of a bucket, but the counters are those of the
 * last sample in the bucket. The uptime comes from the same sample as the counters, so its difference is exact.
 */
function elapsed(before: Sample, now: Sample): number {
  const apart = (now.uptime ?? 0) - (before.uptime ?? 0);
  return now.uptime !== null && before.uptime !== null && apart > 0 ? apart : now.collected_at - before.collected_at;
}

/** Returns the upper end of an axis without a fixed maximum. */
export function topOf(max: number | null, unit: Unit): number {
  if (max !== null && max > 0) return max * 1.1;
  // If all values are zero, a maximum above zero makes the axis labels distinct.
  return unit === '' ? 1 : 1_024;
}

/** Returns a counter's growth per second, or null if a reboot reset the counter. */
function rate(samples: readonly Sample[], index: number, of: (sample: Sample) => number | null): number | null {
  const now = samples[index] as Sample;
  const before = samples[index - 1];
  if (before === undefined) return null;
  const [to, from] = [of(now), of(before)];
  if (to === null || from === null || to < from) return null;
  return (to - from) / elapsed(before, now);
}

const part = (used: number | null, total: number | null): number | null =>
  used === null || total === null || total === 0 ? null : (100 * used) / total;

/** @param requested distance between samples in seconds */
export function linesOf(samples: readonly Sample[], requested: number): Lines {
  const step = medianStep(samples, requested);
  const times: number[] = [];
  const values = { cpu: [], memory: [], swap: [], disk: [], load: [], received: [], sent: [], processes: [] } as Record<
    string,
    Values
  >;
  const push = (time: number, of: (name: string) => number | null) => {
    times.push(time);
    for (const [name, list] of Object.entries(values)) list.push(of(name));
  };
  samples.forEach((sample, index) => {
    const before = samples[index - 1];
    const isGap = before !== undefined && sample.collected_at - before.collected_at > step * gapSteps;
    if (isGap) push(before.collected_at + step, () => null);
    const line: Record<string, number | null> = {
      cpu: sample.cpu_usage,
      memory: part(sample.memory_used, sample.memory_total),
      swap: sample.swap_used,
      disk: part(sample.disk_used, sample.disk_total),
      load: sample.load1,
      received: isGap ? null : rate(samples, index, ({ net_rx_bytes }) => net_rx_bytes),
      sent: isGap ? null : rate(samples, index, ({ net_tx_bytes }) => net_tx_bytes),
      processes: sample.processes,
    };
    push(sample.collected_at, (name) => line[name] ?? null);
  });
  return { times, values };
}

/** Returns the indexes of values between two gaps. They are drawn as points, because a line needs two values. */
export const aloneAt = (values: Values): number[] =>
  values.flatMap((value, index) =>
    value !== null && (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null ? [index] : [],
  );

export interface Outline {
  readonly min: number;
  readonly average: number;
  readonly max: number;
  readonly last: number;
}

/** Returns the summary of a line, or null if it has no values. */
export function outlineOf(values: readonly (number | null)[]): Outline | null {
  let [min, max, sum, count, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0, 0];
  for (const value of values) {
    if (value === null) continue;
    min = Math.min(min, value);
    max = Math.max(max, value);
    sum += value;
    count += 1;
    last = value;
  }
  return count === 0 ? null : { min, average: sum / count, max, last };
}

export type Unit = '%' | 'B' | 'B/s' | '';

/** Formats a value such as `37%`, `1.4 GiB/s`, `0.42`, or `143`. */
export function amountText(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return '–';
  if (unit === '%') return `${digits(value)}%`;
  if (unit === '') return digits(value);
  return bytesText(value) + unit.slice(1);
}

function digits(value: number): string {
  const size = Math.abs(value);
  const text = value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}
