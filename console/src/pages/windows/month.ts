/** Calendar months and maintenance windows in local time. */

export interface Day {
  /** Local midnight at the start of the day. `until` is the next midnight, because not every day has 24 hours. */
  readonly from: Date;
  readonly until: Date;
  /** Whether the day belongs to the shown period. The other days only complete its weeks. */
  readonly isShown: boolean;
}

const addDays = (date: Date, days: number): Date =>
  new Date(date.getFullYear(), date.getMonth(), date.getDate() + days);

/** Returns complete weeks from Monday on, from the one that contains a day to the one that contains another day. */
function weeksBetween(first: Date, last: Date, isShown: (day: Date) => boolean): Day[][] {
  const weeks: Day[][] = [];
  const start = addDays(first, -((first.getDay() + 6) % 7));
  for (let from = start; from.getTime() <= last.getTime(); from = addDays(from, 7))
    weeks.push(
      Array.from({ length: 7 }, (_, day) => {
        const at = addDays(from, day);
        return { from: at, until: addDays(at, 1), isShown: isShown(at) };
      }),
    );
  return weeks;
}

/**
 * Returns the weeks that contain the month.
 * @param month from 0, like Date
 */
export const weeksOf = (year: number, month: number): Day[][] =>
  weeksBetween(new Date(year, month, 1), new Date(year, month + 1, 0), (day) => day.getMonth() === month);

/** Number of weeks that the calendar shows from today on. */
const comingWeeks = 5;

/**
 * Returns the weeks that the calendar shows for a month. For the current month, they begin with today instead of the first
 * day, and continue into the next month.
 * @param now Unix milliseconds
 */
export function shownWeeks(year: number, month: number, now: number): Day[][] {
  const time = new Date(now);
  if (time.getFullYear() !== year || time.getMonth() !== month) return weeksOf(year, month);
  const today = addDays(time, 0);
  const last = addDays(today, 7 * (comingWeeks - 1));
  return weeksBetween(today, last, (day) => day.getTime() >= today.getTime());
}

/** Returns the windows that overlap the day, sorted by start. Times are Unix seconds. */
export function onDay<W extends { readonly starts_at: number; readonly ends_at: number }>(
  windows: readonly W[],
  { from, until }: Day,
): W[] {
  return windows
    .filter(({ starts_at, ends_at }) => starts_at * 1000 < until.getTime() && ends_at * 1000 > from.getTime())
    .toSorted((a, b) => a.starts_at - b.starts_at);
}

/** Returns the shown days on which windows are listed: each window on the first of its shown days. */
export function agendaOf<W extends { readonly starts_at: number; readonly ends_at: number }>(
  weeks: readonly (readonly Day[])[],
  windows: readonly W[],
): readonly { readonly day: Day; readonly windows: readonly W[] }[] {
  const listed = new Set<W>();
  return weeks
    .flat()
    .filter(({ isShown }) => isShown)
    .map((day) => {
      const begun = onDay(windows, day).filter((window) => !listed.has(window));
      for (const window of begun) listed.add(window);
      return { day, windows: begun };
    })
    .filter((entry) => entry.windows.length > 0);
}

/** Parses a month such as `2026-11`. Returns null if it is invalid. */
export function monthOf(text: string): { year: number; month: number } | null {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  return year === undefined ? null : { year: Number(year), month: Number(month) - 1 };
}

/**
 * Formats a month, for example `2026-11`.
 * @param offset months to add
 */
export function monthText(year: number, month: number, offset = 0): string {
  const date = new Date(year, month + offset, 1);
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}`;
}

/**
 * Formats a local time for `<input type="datetime-local">`.
 * @param at Unix milliseconds
 */
export function fieldTime(at: number): string {
  const date = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 16);
}

export type WindowStage = 'open' | 'planned' | 'over';

/** @param now Unix milliseconds */
export const stageOf = (window: { readonly starts_at: number; readonly ends_at: number }, now: number): WindowStage =>
  window.ends_at * 1000 <= now ? 'over' : window.starts_at * 1000 <= now ? 'open' : 'planned';

/**
 * Returns the form values that differ from the window. Omits an unchanged end: the field has no seconds, and is
 * ambiguous in the hour in which clocks are set back.
 */
export function changeOf(
  window: { readonly ends_at: number; readonly reason: string },
  { ends, reason }: { readonly ends: string; readonly reason: string },
): { ends_at?: number; reason?: string } {
  return {
    ...(ends === fieldTime(window.ends_at * 1000) ? {} : { ends_at: Math.floor(Date.parse(ends) / 1000) }),
    ...(reason === window.reason ? {} : { reason }),
  };
}

const clock = { hour: 'numeric', minute: '2-digit' } as const;
const date = { month: 'short', day: 'numeric' } as const;
const zoned = { timeZoneName: 'short' } as const;

/**
 * Formats a window's time range with its time zone, without the current year, and with the date of the end only if it
 * differs. `Intl.DateTimeFormat#formatRange` is not suitable: it omits the first AM of `12:11 AM – 4:11 AM`. Times are
 * Unix seconds.
 * @param now Unix milliseconds
 */
export function rangeText(
  { starts_at, ends_at }: { readonly starts_at: number; readonly ends_at: number },
  now: number,
): string {
  const [start, end] = [new Date(starts_at * 1000), new Date(ends_at * 1000)];
  const year = new Date(now).getFullYear();
  const isThisYear = [start, end].every((at) => at.getFullYear() === year);
  const day = isThisYear ? date : ({ ...date, year: 'numeric' } as const);
  const isOneDay = start.toDateString() === end.toDateString();
  // In a window in which clocks change, each time has its zone.
  const isOneZone = start.getTimezoneOffset() === end.getTimezoneOffset();
  const from = start.toLocaleString(undefined, { ...day, ...clock, ...(isOneZone ? {} : zoned) });
  return `${from} – ${end.toLocaleString(undefined, { ...(isOneDay ? {} : day), ...clock, ...zoned })}`;
}
