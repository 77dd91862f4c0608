import { usageError } from '../exit.ts';

/** Parses arguments and options. Every function throws CliError (usage) if the text is invalid. */

interface Pair {
  key: string;
  value: string;
}

/** Parses `key=value`. The value may be empty or contain equals signs. */
export function parsePair(text: string): Pair {
  const at = text.indexOf('=');
  if (at < 1) throw usageError(`${JSON.stringify(text)} is not a pair`, 'Write it as key=value, e.g. distro=debian.');
  return { key: text.slice(0, at), value: text.slice(at + 1) };
}

/** Parses a tag: `key=value`, or only `key` for a tag without a value. */
export function parseTag(text: string): Pair {
  if (/^[A-Za-z][\w./-]*$/.test(text)) return { key: text, value: '' };
  if (text.indexOf('=') < 1)
    throw usageError(
      `${JSON.stringify(text)} is not a tag`,
      'Write a tag as key=value, e.g. role=web, or only as key.',
    );
  return parsePair(text);
}

const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/**
 * Parses a duration such as `90`, `90s`, `30m`, `12h`, `7d`, or `2w`.
 * @returns seconds
 */
export function parseDuration(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,9})([smhdw])?$/.exec(text) ?? [];
  if (count === undefined)
    throw usageError(
      `${JSON.stringify(text)} is not a duration`,
      'Specify a number and a unit, such as 90s, 30m, 12h, or 7d.',
    );
  return Number(count) * (seconds[unit] ?? 1);
}

/**
 * How a moment is used: in the past (`since`), or as the start (`from`) or end (`until`) of a future period. For
 * `since`, a duration is subtracted from the current time; otherwise, it is added. For `until`, the period includes the
 * whole day; otherwise, a day means its start.
 */
export type MomentUse = 'since' | 'from' | 'until';

const examples: Readonly<Record<MomentUse, string>> = {
  since:
    'Specify a duration before now, such as 30m, 2h, or 7d, or a time, such as 2026-12-01, 2026-12-01T22:00:00Z, or 1795000000.',
  from: 'Specify a duration from now, such as 30m, 2h, or 7d, or a time, such as 2026-12-01 or 2026-12-01T22:00:00Z.',
  until:
    'Specify a duration from now, such as 30m, 2h, or 90d, a last day, such as 2026-12-01, or a time, such as 2026-12-01T22:00:00Z.',
};

/** A Unix timestamp has ten digits; no duration has that many. */
const unixTime = /^\d{10}$/;

/** End of the year 9999, the last year with four digits in ISO 8601. Unix seconds. */
const latest = 253_402_300_799;

/**
 * Parses a moment: a duration (`2h`, `7d`), a day (`2026-12-01`), an ISO 8601 time (`2026-12-01T22:00:00Z`), or Unix
 * seconds (`1795000000`). A time without a zone is local.
 * @param now Unix seconds
 * @returns Unix seconds
 */
export function parseMoment(text: string, now: number, use: MomentUse = 'since'): number {
  const isLength = use === 'since' ? /^\d{1,9}[smhdw]$/.test(text) : /^\d{1,9}[smhdw]?$/.test(text);
  const moment = isLength
    ? Math.floor(now) + (use === 'since' ? -1 : 1) * parseDuration(text)
    : unixTime.test(text)
      ? Number(text)
      : Math.floor((dayOf(text, use === 'until') ?? timeOf(text)) / 1000);
  if (!(Math.abs(moment) <= latest)) throw usageError(`${JSON.stringify(text)} is not a time`, examples[use]);
  return moment;
}

/**
 * Returns the start or the end of a day in milliseconds; NaN for a day that does not exist, and null for other text.
 */
function dayOf(text: string, end: boolean): number | null {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return null;
  return hasDay(year, month, day) ? new Date(year, month - 1, day + (end ? 1 : 0)).getTime() : Number.NaN;
}

function timeOf(text: string): number {
  const [, year, month, day] =
    /^(\d{4})-(\d\d)-(\d\d)[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/i.exec(text)?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined || !hasDay(year, month, day)) return Number.NaN;
  return Date.parse(text.replace(' ', 'T'));
}

/** Reports whether a day exists. `Date` does not check this: it accepts February 30 as March 2. */
function hasDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}

/** Parses an integer from `min` to `max`. */
export function parseCount(option: string, text: string, min: number, max: number): number {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(count >= min && count <= max))
    throw usageError(`${option} is ${JSON.stringify(text)}`, `Specify a whole number from ${min} to ${max}.`);
  return count;
}

/** Parses a boolean environment variable. */
export function parseSwitch(variable: string, text: string | undefined): boolean {
  if (text === undefined || /^(|0|false|no|off)$/i.test(text)) return false;
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  throw usageError(`${variable} is ${JSON.stringify(text)}`, 'Set it to true or false.');
}

export function parseChoice<const C extends string>(option: string, text: string, choices: readonly C[]): C {
  // The API's statuses have the British spelling, all texts have the American one.
  const spelled = text === 'canceled' ? 'cancelled' : text;
  const found = choices.find((choice) => choice === spelled);
  if (found === undefined)
    throw usageError(`${option} is ${JSON.stringify(text)}`, `Choose one of ${choices.join(', ')}.`);
  return found;
}
