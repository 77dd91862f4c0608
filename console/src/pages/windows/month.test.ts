import { expect, test } from 'vitest';
import {
  agendaOf,
  changeOf,
  fieldTime,
  monthOf,
  monthText,
  onDay,
  rangeText,
  shownWeeks,
  stageOf,
  weeksOf,
} from './month.ts';

test('shows a month in whole weeks from Monday', () => {
  const weeks = weeksOf(2026, 10);
  expect(weeks).toHaveLength(6);
  expect(weeks[0]?.[0]?.from).toEqual(new Date(2026, 9, 26));
  expect(weeks.at(-1)?.at(-1)?.from).toEqual(new Date(2026, 11, 6));
  expect(weeks.flat().filter(({ isShown }) => isShown)).toHaveLength(30);
  expect(weeksOf(2027, 1)).toHaveLength(4); // This month starts on a Monday and has 28 days.
  for (const week of weeks) for (const day of week) expect(day.until > day.from).toBe(true);
});

test('shows a window on every day that it overlaps, but not on a day that starts at its end', () => {
  const at = (day: number, hour: number) => new Date(2026, 10, day, hour).getTime() / 1000;
  const window = { starts_at: at(10, 22), ends_at: at(12, 0) };
  const days = weeksOf(2026, 10).flat();
  const touched = days.filter((day) => onDay([window], day).length > 0).map(({ from }) => from.getDate());
  expect(touched).toEqual([10, 11]);
  expect(stageOf(window, at(9, 0) * 1000)).toBe('planned');
  expect(stageOf(window, window.starts_at * 1000)).toBe('open');
  expect(stageOf(window, window.ends_at * 1000)).toBe('over');
});

test('begins the current month with today and continues into the next month', () => {
  const shown = (year: number, month: number, now: Date) =>
    shownWeeks(year, month, now.getTime())
      .flat()
      .filter(({ isShown }) => isShown)
      .map(({ from }) => from);
  const now = new Date(2026, 10, 18, 12);
  const days = shown(2026, 10, now);
  expect([days[0], days.at(-1)]).toEqual([new Date(2026, 10, 18), new Date(2026, 11, 20)]);
  expect(shownWeeks(2026, 10, now.getTime())).toHaveLength(5);
  // Another month has all of its days, even if they have passed.
  expect(shown(2026, 9, now)).toHaveLength(31);
  expect(shown(2027, 10, now)).toHaveLength(30);
});

test('lists each window once in the agenda of a month, on the first of its days in the month', () => {
  const at = (month: number, day: number) => new Date(2026, month, day, 22).getTime() / 1000;
  const across = { starts_at: at(9, 30), ends_at: at(10, 3) };
  const inside = { starts_at: at(10, 10), ends_at: at(10, 12) };
  const later = { starts_at: at(11, 1), ends_at: at(11, 2) };
  const listed = agendaOf(weeksOf(2026, 10), [later, inside, across]);
  expect(listed.map(({ day, windows }) => [day.from.getDate(), windows])).toEqual([
    [1, [across]],
    [10, [inside]],
  ]);
});

test('parses and formats months in the URL', () => {
  expect(monthOf('2026-11')).toEqual({ year: 2026, month: 10 });
  expect(monthOf('2026-13')).toBeNull();
  expect(monthOf('')).toBeNull();
  expect(monthText(2026, 10, 2)).toBe('2027-01');
  expect(monthText(2026, 0, -1)).toBe('2025-12');
});

test('formats a local time for a form field', () => {
  const at = new Date(2026, 10, 22, 6, 5).getTime();
  expect(fieldTime(at)).toBe('2026-11-22T06:05');
  expect(new Date(fieldTime(at)).getTime()).toBe(at);
});

test('includes only changed values in the update', () => {
  // The end time includes seconds, which a form field cannot show. The CLI can create such windows.
  const window = { ends_at: new Date(2026, 10, 22, 6, 5, 42).getTime() / 1000, reason: 'switches' };
  const ends = fieldTime(window.ends_at * 1000);
  expect(changeOf(window, { ends, reason: 'switches' })).toEqual({});
  expect(changeOf(window, { ends, reason: 'routers' })).toEqual({ reason: 'routers' });
  expect(changeOf(window, { ends: '2026-11-22T07:00', reason: 'switches' })).toEqual({
    ends_at: new Date(2026, 10, 22, 7).getTime() / 1000,
  });
});

const hourAndMinute = { hour: 'numeric', minute: '2-digit' } as const;

test('formats a time range without the current year', () => {
  const at = (text: string) => Math.floor(Date.parse(text) / 1000);
  const range = { starts_at: at('2026-11-29T10:00'), ends_at: at('2026-11-30T02:00') };
  expect(rangeText(range, at('2026-06-01T00:00') * 1000)).not.toContain('2026');
  expect(rangeText(range, at('2027-06-01T00:00') * 1000)).toContain('2026');
  const silvester = { starts_at: at('2026-12-31T22:00'), ends_at: at('2027-01-01T02:00') };
  expect(rangeText(silvester, at('2026-06-01T00:00') * 1000)).toContain('2027');
});

test('formats both times of a range with the day period, and the range with its time zone', () => {
  const [starts, ends] = [new Date(2026, 11, 3, 0, 11), new Date(2026, 11, 3, 4, 11)];
  const text = rangeText({ starts_at: starts.getTime() / 1000, ends_at: ends.getTime() / 1000 }, starts.getTime());
  const [from = '', until = ''] = text.split(' – ');
  expect(from).toBe(starts.toLocaleString(undefined, { month: 'short', day: 'numeric', ...hourAndMinute }));
  expect(until).toBe(ends.toLocaleTimeString(undefined, { ...hourAndMinute, timeZoneName: 'short' }));
});
