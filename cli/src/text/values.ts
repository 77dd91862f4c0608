import { usageError } from '../exit.ts';

/** Reads what is typed as an argument or option. All throw CliError (usage). */

/** `key=value`; the value may hold further equals signs, or be empty. */
export function parseTag(text: string): { key: string; value: string } {
  const at = text.indexOf('=');
  if (at < 1) throw usageError(`${JSON.stringify(text)} is not a tag`, 'Tags are written key=value, e.g. role=web.');
  return { key: text.slice(0, at), value: text.slice(at + 1) };
}

const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** `90`, `90s`, `30m`, `12h`, `7d`, `2w`: seconds. */
export function parseDuration(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,9})([smhdw])?$/.exec(text) ?? [];
  if (count === undefined)
    throw usageError(`${JSON.stringify(text)} is not a length of time`, 'Write it like 90s, 30m, 12h or 7d.');
  return Number(count) * (seconds[unit] ?? 1);
}

/**
 * What a moment is asked for: what lies in the past (`since`), what begins (`from`) or what ends (`until`). A length of time
 * counts back from now for the first and ahead for the others; a day is its start, but for `until` all of it.
 */
export type MomentUse = 'since' | 'from' | 'until';

const examples: Readonly<Record<MomentUse, string>> = {
  since: 'Write how long ago, like 30m, 2h or 7d, or a time like 2026-12-01 or 2026-12-01T22:00:00Z.',
  from: 'Write in how long, like 30m, 2h or 7d, or a time like 2026-12-01 or 2026-12-01T22:00:00Z.',
  until:
    'Write in how long, like 30m, 2h or 90d, a day like 2026-12-01, which is then included, or a time like 2026-12-01T22:00:00Z.',
};

/** The last of the year 9999, which is as far as ISO 8601 writes four digits. Unix seconds. */
const latest = 253_402_300_799;

/**
 * A moment as people say it, the one way for all options: a length of time (`2h`, `7d`), a day (`2026-12-01`), or a time as
 * ISO 8601 has it (`2026-12-01T22:00:00Z`). What has no zone is in this machine's.
 * @param now Unix seconds
 * @returns Unix seconds
 */
export function parseMoment(text: string, now: number, use: MomentUse = 'since'): number {
  const isLength = use === 'since' ? /^\d{1,9}[smhdw]$/.test(text) : /^\d{1,9}[smhdw]?$/.test(text);
  const moment = isLength
    ? Math.floor(now) + (use === 'since' ? -1 : 1) * parseDuration(text)
    : Math.floor((dayOf(text, use === 'until') ?? timeOf(text)) / 1000);
  if (!(Math.abs(moment) <= latest)) throw usageError(`${JSON.stringify(text)} is not a time`, examples[use]);
  return moment;
}

/** The start of a day, or its end, which is the start of the next; NaN when the calendar has no such day, null when it is none. */
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

/** JavaScript takes the 30th of February for the 2nd of March. */
function hasDay(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}

/** A whole number within bounds. */
export function parseCount(option: string, text: string, least: number, most: number): number {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(count >= least && count <= most))
    throw usageError(`${option} is ${JSON.stringify(text)}`, `Give a whole number from ${least} to ${most}.`);
  return count;
}

/** A switch in a variable: a clear yes or no. */
export function parseSwitch(variable: string, text: string | undefined): boolean {
  if (text === undefined || /^(|0|false|no|off)$/i.test(text)) return false;
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  throw usageError(`${variable} is ${JSON.stringify(text)}`, 'Set it to true or false.');
}

/** One of a few words. */
export function parseChoice<const C extends string>(option: string, text: string, choices: readonly C[]): C {
  const found = choices.find((choice) => choice === text);
  if (found === undefined)
    throw usageError(`${option} is ${JSON.stringify(text)}`, `It is one of ${choices.join(', ')}.`);
  return found;
}
