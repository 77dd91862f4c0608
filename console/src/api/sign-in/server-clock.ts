/** Milliseconds. `Date` headers have a resolution of one second, and answers take time to arrive. */
const tolerance = 5_000;

/**
 * Tracks the orchestrator's clock by the `Date` headers of its answers, since a browser's clock may be hours off.
 * @param now Unix milliseconds of the browser
 */
export function createServerClock(now: () => number) {
  let ahead = 0;
  return {
    /** Unix milliseconds. */
    now: () => now() + ahead,
    /** @param date the `Date` header of an answer */
    observe(date: string | null): void {
      const difference = Date.parse(date ?? '') - now();
      if (Number.isNaN(difference)) return;
      ahead = Math.abs(difference) < tolerance ? 0 : difference;
    },
  };
}
