/**
 * Maximum ignored difference, in milliseconds: `Date` headers have a resolution of one second, and responses take time
 * to arrive.
 */
const tolerance = 5_000;

/**
 * Estimates the orchestrator's clock from the `Date` headers of its responses, because a browser's clock may be hours
 * off.
 * @param now returns the browser's time in Unix milliseconds
 */
export function createServerClock(now: () => number) {
  let ahead = 0;
  return {
    /** Unix milliseconds. */
    now: () => now() + ahead,
    /** @param date the `Date` header of a response */
    observe(date: string | null): void {
      const difference = Date.parse(date ?? '') - now();
      if (Number.isNaN(difference)) return;
      ahead = Math.abs(difference) < tolerance ? 0 : difference;
    },
  };
}
