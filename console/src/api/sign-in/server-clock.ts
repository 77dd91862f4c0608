/** Milliseconds. Dates of answers are to the second, and answers take their time. */
const unsure = 5_000;

/**
 * The time that it is at the orchestrator, as its answers are dated. The clock of a browser may be hours off, and times of
 * the API are told and compared by this one.
 * @param now Unix milliseconds, by the browser
 */
export function createServerClock(now: () => number) {
  let ahead = 0;
  return {
    /** Unix milliseconds. */
    now: () => now() + ahead,
    /** @param date the `Date` of an answer */
    heard(date: string | null): void {
      const difference = Date.parse(date ?? '') - now();
      if (Number.isNaN(difference)) return;
      ahead = Math.abs(difference) < unsure ? 0 : difference;
    },
  };
}
