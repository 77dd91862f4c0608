import { isUnixTime } from '@muster/protocol/unix-time';
import picocolors from 'picocolors';
import type { Environment } from '../directories.ts';

export type Colors = ReturnType<typeof picocolors.createColors>;

/** Properties of the output that determine the layout and the colors of text. */
export interface Style {
  readonly color: Colors;
  /** Columns of the terminal; null for no limit if the output is not a terminal. */
  readonly width: number | null;
  /** Unix seconds, for relative times. */
  readonly now: number;
  /** Whether to show details that are usually omitted. */
  readonly verbose: boolean;
}

const isForced = (text: string | undefined): boolean => text !== undefined && !/^(|0|false)$/.test(text);

/** Reports whether to use color: on a terminal that supports it, elsewhere only if forced, and never with NO_COLOR. */
export function hasColor(terminal: boolean, env: Environment): boolean {
  if (env.NO_COLOR) return false;
  if (isForced(env.CLICOLOR_FORCE) || isForced(env.FORCE_COLOR)) return true;
  return terminal && env.TERM !== 'dumb' && env.CLICOLOR !== '0' && !/^(0|false)$/.test(env.FORCE_COLOR ?? '');
}

/** Returns the width of a terminal, which COLUMNS overrides; null for no limit if the output is not a terminal. */
export function columnsOf(stream: { isTTY?: boolean | undefined; columns?: number | undefined }, env: Environment) {
  if (stream.isTTY !== true) return null;
  const said = /^[1-9]\d{0,3}$/.test(env.COLUMNS ?? '') ? Number(env.COLUMNS) : stream.columns;
  return Math.max(40, said ?? 80);
}

export const colorsFor = (on: boolean): Colors => picocolors.createColors(on);

const units: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
];

/** Returns a duration in its largest unit, such as `3m`; the number of that unit; and the remaining seconds. */
function largestUnit(seconds: number): [text: string, count: number, rest: number] {
  for (const [unit, size] of units) {
    const count = Math.floor(seconds / size);
    if (count > 0) return [`${count}${unit}`, count, seconds - count * size];
  }
  return ['0s', 0, 0];
}

/** Formats a duration, such as `12m`. Adds the next smaller unit to a number below ten: `1h 59m`. */
export function duration(seconds: number): string {
  const [text, count, rest] = largestUnit(Math.max(0, Math.round(seconds)));
  if (count >= 10) return text;
  const second = units[units.findIndex(([unit]) => text.endsWith(unit)) + 1];
  const more = second === undefined ? 0 : Math.floor(rest / second[1]);
  return more === 0 ? text : `${text} ${more}${second?.[0]}`;
}

/** Formats the time since a moment in its largest unit, such as `3m`. */
export const age = (at: number, now: number): string => largestUnit(Math.max(0, Math.round(now - at)))[0];

/** Shown in place of an impossible time. Times are untrusted, because the response may come from a proxy. */
const unknownTime = 'unknown';

/**
 * Formats a time relative to the current time, such as `3m ago`. A time slightly in the future, which results from
 * clock skew, becomes "just now".
 */
export const ago = (at: number, now: number): string => {
  if (!isUnixTime(at)) return unknownTime;
  return now - at < 5 ? 'just now' : `${age(at, now)} ago`;
};

/**
 * Formats a time in ISO 8601 with seconds: `2026-11-20T08:00:00Z`.
 * @param at Unix seconds
 */
export const timestamp = (at: number): string =>
  isUnixTime(at) ? new Date(at * 1000).toISOString().replace(/\.\d+Z$/, 'Z') : unknownTime;

/** Formats a time relative to the current time; with `--verbose`, in ISO 8601. */
export const when = (at: number, { now, verbose }: Pick<Style, 'now' | 'verbose'>): string =>
  verbose ? timestamp(at) : ago(at, now);

/**
 * Matches times in text from the orchestrator (RFC 3339, in UTC), including a preceding `at`, which a relative time
 * does not need.
 */
const timesInText = /\b(?:at )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g;

/** Replaces RFC 3339 times in text with times relative to now; with `--verbose`, keeps them. */
export const withRelativeTimes = (text: string, { now, verbose }: Pick<Style, 'now' | 'verbose'>): string =>
  verbose
    ? text
    : text.replace(timesInText, (whole, time: string) => {
        const at = Date.parse(time) / 1000;
        if (!Number.isFinite(at)) return whole;
        return at - now < 5 ? ago(at, now) : `in ${age(now, at)}`;
      });

/**
 * Formats an ID for a list. If the terminal has fewer than 100 columns, returns only the last eight characters of the
 * ID, which vary most and still identify the item.
 */
export const listedId = (id: string, { width, verbose }: Pick<Style, 'width' | 'verbose'>): string =>
  width === null || width >= 100 || verbose ? id : id.slice(-8);

/** Returns a count with its noun: `1 agent`, `3 agents`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`;
