import { isUnixTime } from '@muster/protocol/unix-time';
import { useSyncExternalStore } from 'react';

interface Moment {
  /** Unix milliseconds. */
  readonly now: number;
  /** Whether times have tooltips with the absolute time. */
  readonly hasTooltips: boolean;
}

const listeners = new Set<() => void>();
let clock: () => number = Date.now;
let moment: Moment = { now: clock(), hasTooltips: false };

function become(next: Moment): void {
  moment = next;
  for (const each of listeners) each();
}

/**
 * Sets the clock for relative times. The browser's clock may be hours off.
 * @param read returns Unix milliseconds
 */
export function setClock(read: () => number): void {
  clock = read;
  moment = { ...moment, now: clock() };
}

/** Returns the current time in Unix milliseconds, for values to send. `useNow` is up to five seconds behind. */
export const momentNow = (): number => clock();

/**
 * Delay in milliseconds between the first time that is shown and the tooltips, because `absoluteTime` would delay the
 * first render.
 */
const tooltipDelayMs = 1_000;
let isTooltipTimerSet = false;
let timer: number | null = null;

/** Updates the time when the operator returns to the tab, because its timer was paused. */
const onVisibility = (): void => {
  if (!document.hidden) become({ ...moment, now: clock() });
};

/**
 * Calls a function when the time advances. All times on a page share one timer, which pauses while the tab is hidden.
 */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (!isTooltipTimerSet) {
    isTooltipTimerSet = true;
    window.setTimeout(() => become({ ...moment, hasTooltips: true }), tooltipDelayMs);
  }
  if (timer === null) {
    timer = window.setInterval(onVisibility, 5_000);
    document.addEventListener('visibilitychange', onVisibility);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    window.clearInterval(timer);
    document.removeEventListener('visibilitychange', onVisibility);
    timer = null;
  };
}

/** Maximum age in milliseconds of the shared current time when the first component starts to use it. */
const maxErrorMs = 1_000;

const useMoment = (): Moment => {
  if (listeners.size === 0 && Math.abs(clock() - moment.now) > maxErrorMs) moment = { ...moment, now: clock() };
  return useSyncExternalStore(subscribe, () => moment);
};

/** Returns the current time in Unix milliseconds, updated every five seconds. */
export const useNow = (): number => useMoment().now;

const steps: readonly (readonly [seconds: number, per: number, unit: string])[] = [
  [60, 1, 's'],
  [3_600, 60, 'm'],
  [86_400, 3_600, 'h'],
  [86_400 * 60, 86_400, 'd'],
  [86_400 * 730, 86_400 * 30, 'mo'],
  [Number.POSITIVE_INFINITY, 86_400 * 365, 'y'],
];

/**
 * Formats a duration in its largest unit, such as `4m`, `3h`, or `12d`.
 * @param seconds not negative
 */
export function shortDuration(seconds: number): string {
  const [, per, unit] = steps.find(([below]) => seconds < below) as (typeof steps)[number];
  return `${Math.floor(seconds / per)}${unit}`;
}

/** Units in which a remaining time of less than three units also shows the next smaller unit, which is in seconds. */
const dividedUnits: Readonly<Record<string, number>> = { h: 60, d: 3_600 };

/**
 * Formats a remaining time, rounded to its unit, because a time that is rounded down names the wrong day. Short times
 * have two units, such as `1d 23h`.
 * @param seconds not negative
 */
export function remainingTime(seconds: number): string {
  const [, per, unit] = steps.find(([below]) => seconds < below) as (typeof steps)[number];
  const smaller = dividedUnits[unit];
  if (smaller === undefined || seconds / per >= 3) return shortDuration(Math.round(seconds / per) * per);
  const rounded = Math.round(seconds / smaller) * smaller;
  const rest = rounded % per;
  return rest === 0 ? shortDuration(rounded) : `${shortDuration(rounded - rest)} ${shortDuration(rest)}`;
}

/**
 * Formats a time relative to another time, such as `4m ago`, `in 3h`, or `now`. Both times are in Unix milliseconds.
 */
export function relativeTime(at: number, from: number): string {
  const seconds = Math.round((from - at) / 1000);
  // A current time may appear to be in the future: the page's clock updates every five seconds, or later on a busy
  // machine, and it estimates the clock of the orchestrator.
  if (seconds < 5 && seconds > -16) return 'now';
  return seconds > 0 ? `${shortDuration(seconds)} ago` : `in ${remainingTime(-seconds)}`;
}

let fullFormat: Intl.DateTimeFormat | undefined;

/**
 * Formats a time in the browser's locale. The first call is slow, because the browser loads the locale's data.
 * @param at Unix milliseconds
 */
export function absoluteTime(at: number): string {
  fullFormat ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
  return fullFormat.format(at);
}

/** Matches times in text from the orchestrator (RFC 3339, in UTC), with the word before them. */
const timesInText = /(?:\b(at|before|since) )?\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g;
const dateParts = { dateStyle: 'medium' } as const;
const timeParts = { timeStyle: 'short' } as const;
let textFormats: Record<'full' | 'date' | 'time', Intl.DateTimeFormat> | undefined;

/** Formats a time after a preposition: `at 14:05` if it is today, otherwise `on Dec 3, 2026` with its time of day. */
function phraseOf(word: string, at: number): string {
  textFormats ??= {
    full: new Intl.DateTimeFormat(undefined, { ...dateParts, ...timeParts }),
    date: new Intl.DateTimeFormat(undefined, dateParts),
    time: new Intl.DateTimeFormat(undefined, timeParts),
  };
  const { full, date, time } = textFormats;
  if (word === '') return full.format(at);
  const local = new Date(at);
  if (local.toDateString() === new Date(momentNow()).toDateString()) return `${word} ${time.format(at)}`;
  // The form of a secret asks for a day, at the end of which the secret expires.
  const isEndOfDay = new Date(at + 1_000).toDateString() !== local.toDateString();
  return `${word === 'at' ? 'on' : word} ${(isEndOfDay ? date : full).format(at)}`;
}

/** Replaces the RFC 3339 times in a text with times in the browser's locale and time zone. */
export const withLocalTimes = (text: string): string =>
  text.replace(timesInText, (found, word: string | undefined, time: string) => {
    const at = Date.parse(time);
    return Number.isFinite(at) ? phraseOf(word ?? '', at) : found;
  });

/** Converts a time from the API (Unix seconds or RFC 3339) to Unix milliseconds. */
export const milliseconds = (at: number | string): number => (typeof at === 'number' ? at * 1000 : Date.parse(at));

/** Shows a time from the API relative to now, with the absolute time as tooltip. */
export const Time = ({ at }: { readonly at: number | string | null | undefined }) => (
  <RelativeTime at={at} format={relativeTime} />
);

/** Shows how long ago a time from the API was, such as `4h`, with the absolute time as tooltip. */
export const Elapsed = ({ at }: { readonly at: number | string }) => (
  <RelativeTime at={at} format={(ms, from) => shortDuration(Math.max(0, from - ms) / 1000)} />
);

function RelativeTime({
  at,
  format,
}: {
  readonly at: number | string | null | undefined;
  readonly format: (at: number, from: number) => string;
}) {
  const { now, hasTooltips } = useMoment();
  if (at === null || at === undefined) return <span className="text-muted">–</span>;
  const ms = milliseconds(at);
  if (!isUnixTime(ms / 1000)) return <span className="text-muted">–</span>;
  return (
    <time
      dateTime={new Date(ms).toISOString()}
      title={hasTooltips ? absoluteTime(ms) : undefined}
      className="tabular whitespace-nowrap"
    >
      {format(ms, now)}
    </time>
  );
}
