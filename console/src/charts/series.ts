import type { Sample } from '@muster/protocol';

/** Samples as lines of charts: rates of what counts up, gaps where nothing was measured, and what it comes to. Pure. */

/** Of one line; null breaks it. */
export type Values = (number | null)[];

export interface Lines {
  /** Unix seconds, ascending. */
  readonly times: readonly number[];
  readonly values: Readonly<Record<string, Values>>;
}

const mostPoints = 360;

/** Seconds of a bucket, so that a range has no more points than can be told apart; agents measure once a minute. */
export function stepFor(seconds: number): number {
  const steps = [60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 86_400];
  return steps.find((step) => seconds / step <= mostPoints) ?? 86_400;
}

/** With so many missing there was nothing measured, rather than a sample a little late. */
const missing = 2.5;

/** Seconds from one to the next, as most are apart: an agent may be told to measure less often than is asked for. */
function usualStep(samples: readonly Sample[], step: number): number {
  const apart = samples.slice(1).map((sample, index) => sample.collected_at - (samples[index] as Sample).collected_at);
  // A few do not say whether something lacks between them.
  if (apart.length < 3) return step;
  const usual = apart.sort((one, other) => one - other)[Math.floor((apart.length - 1) / 2)] as number;
  return Math.max(step, Math.min(usual, 3_600));
}

/**
 * Seconds from one sample to the next. A bucket says when it begins, and not when the last of it was taken, which is what
 * its counters are of; the uptime counts along with them and does.
 */
function elapsed(before: Sample, now: Sample): number {
  const apart = (now.uptime ?? 0) - (before.uptime ?? 0);
  return now.uptime !== null && before.uptime !== null && apart > 0 ? apart : now.collected_at - before.collected_at;
}

/** The top of a scale of which nobody says how far it goes. */
export function topOf(most: number | null, unit: Unit): number {
  if (most !== null && most > 0) return most * 1.1;
  // Of nothing but zeros: what the steps below it can be told apart with.
  return unit === '' ? 1 : 1_000;
}

/** How much a counter grew in a second; null where it began anew: the machine was restarted. */
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

/** @param asked seconds between samples, as they were asked for */
export function linesOf(samples: readonly Sample[], asked: number): Lines {
  const step = usualStep(samples, asked);
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
    const isGap = before !== undefined && sample.collected_at - before.collected_at > step * missing;
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

/** Where a value stands between gaps, and no line would show it. */
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

/** What a line comes to; null when it has no value. */
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

const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];

/** As `37 %`, `1.4 GB/s`, `0.42`, `143`. */
export function amountText(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return '–';
  if (unit === '%') return `${digits(value)}%`;
  if (unit === '') return digits(value);
  const exponent = Math.min(prefixes.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${digits(value / 1_000 ** exponent)} ${prefixes[exponent]}${unit}`;
}

function digits(value: number): string {
  const size = Math.abs(value);
  const text = value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}
