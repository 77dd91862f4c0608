import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
let clock: () => number = Date.now;
let now = clock();

/**
 * Sets the clock for relative times. The browser's clock may be hours off.
 * @param read returns Unix milliseconds
 */
export function setClock(read: () => number): void {
  clock = read;
}

/** Returns the current time in Unix milliseconds, for values to send. `useNow` is up to five seconds behind. */
export const momentNow = (): number => clock();

let timer: number | null = null;

/** All times on a page share one timer. It pauses while the tab is hidden. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= window.setInterval(() => {
    if (document.hidden) return;
    now = clock();
    for (const each of listeners) each();
  }, 5_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    window.clearInterval(timer);
    timer = null;
  };
}

/** Returns the current time in Unix milliseconds, updated every five seconds. */
export const useNow = (): number => {
  if (listeners.size === 0) now = clock();
  return useSyncExternalStore(subscribe, () => now);
};

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

/** Formats a time relative to another one, such as `4m ago`, `in 3h`, or `now`. Both times are in Unix milliseconds. */
export function relativeTime(at: number, from: number): string {
  const seconds = Math.round((from - at) / 1000);
  // The page's clock updates every five seconds, so a current time may appear to be up to five seconds in the future.
  if (seconds < 5 && seconds > -6) return 'now';
  return seconds > 0 ? `${shortDuration(seconds)} ago` : `in ${shortDuration(-seconds)}`;
}

const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** @param at Unix milliseconds */
export const absoluteTime = (at: number): string => fullFormat.format(at);

/** Converts a time from the API (Unix seconds or RFC 3339) to Unix milliseconds. */
export const milliseconds = (at: number | string): number => (typeof at === 'number' ? at * 1000 : Date.parse(at));

/** Reports whether `Date` can represent this time. Untrusted input may be out of range (ECMA-262, section 21.4.1.1). */
export const isTime = (ms: number): boolean => Math.abs(ms) <= 8.64e15;

/** Shows a time from the API relative to now, with the absolute time as tooltip. */
export function Time({ at }: { readonly at: number | string | null | undefined }) {
  const present = useNow();
  if (at === null || at === undefined) return <span className="text-muted">–</span>;
  const ms = milliseconds(at);
  if (!isTime(ms)) return <span className="text-muted">–</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={absoluteTime(ms)} className="tabular whitespace-nowrap">
      {relativeTime(ms, present)}
    </time>
  );
}
