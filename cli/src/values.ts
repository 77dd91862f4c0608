import { usageError } from './exit.ts';

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

/** A time as ISO 8601 has it; without a zone it is this machine's. Unix seconds. */
export function parseTime(text: string): number {
  const time = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/i.test(text)
    ? Date.parse(text.replace(' ', 'T'))
    : Number.NaN;
  if (Number.isNaN(time))
    throw usageError(
      `${JSON.stringify(text)} is not a time`,
      'Write it like 2026-12-01T22:00:00Z, or 2026-12-01T22:00.',
    );
  return Math.floor(time / 1000);
}

/**
 * A moment as people say it: a length of time ago (`2h`, `7d`), a day, or a time as `parseTime` reads it.
 * @param now Unix seconds
 * @returns Unix seconds
 */
export function parseMoment(text: string, now: number): number {
  if (/^\d{1,9}[smhdw]$/.test(text)) return Math.floor(now) - parseDuration(text);
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return parseTime(`${text}T00:00`);
  try {
    return parseTime(text);
  } catch {
    throw usageError(
      `${JSON.stringify(text)} is not a time`,
      'Write how long ago, like 30m, 2h or 7d, or a time like 2026-12-01 or 2026-12-01T22:00:00Z.',
    );
  }
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
