import { useSyncExternalStore } from 'react';

/** Times as people say them, the whole of it on hover. */

const listeners = new Set<() => void>();
let clock: () => number = Date.now;
let now = clock();

/** Whose clock times are told by: that of a browser may be hours off. @param read Unix milliseconds */
export function setClock(read: () => number): void {
  clock = read;
}

/** Unix milliseconds, to the moment: for what is sent. */
export const momentNow = (): number => clock();

let timer: number | null = null;

/** One clock for all that is shown: it turns every five seconds, and not while the tab is hidden. */
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

/** Unix milliseconds, of that clock. */
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

/** As `4m`, `3h`, `12d`. @param seconds not negative */
export function shortDuration(seconds: number): string {
  const [, per, unit] = steps.find(([below]) => seconds < below) as (typeof steps)[number];
  return `${Math.floor(seconds / per)}${unit}`;
}

/** As `4m ago`, `in 3h`, `now`. Both in Unix milliseconds. */
export function relativeTime(at: number, from: number): string {
  const seconds = Math.round((from - at) / 1000);
  // The clock that is shown turns every five seconds: what has just ended may be that far ahead of it.
  if (seconds < 5 && seconds > -6) return 'now';
  return seconds > 0 ? `${shortDuration(seconds)} ago` : `in ${shortDuration(-seconds)}`;
}

const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** @param at Unix milliseconds */
export const absoluteTime = (at: number): string => whole.format(at);

/** Unix milliseconds of what the API says: Unix seconds, or RFC 3339. */
export const milliseconds = (at: number | string): number => (typeof at === 'number' ? at * 1000 : Date.parse(at));

/** Whether it is one that a browser can show: who made it up may have gone further. */
export const isTime = (ms: number): boolean => Math.abs(ms) <= 8.64e15;

/** A point in time, as the API gives it. */
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
