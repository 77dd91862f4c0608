/** Maximum difference in milliseconds that is ignored. */
const tolerance = 5_000;
/** Resolution of a `Date` header in milliseconds. */
const resolution = 1_000;

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
    /**
     * @param date the `Date` header of a response
     * @param requestedAt the browser's time of the request in Unix milliseconds. A slow response does not change the
     * estimate, because the header's time is between the request and the response.
     */
    observe(date: string | null, requestedAt: number): void {
      const sent = Date.parse(date ?? '');
      if (Number.isNaN(sent)) return;
      const least = sent - now();
      const most = sent + resolution - requestedAt;
      if (least < tolerance && most > -tolerance) ahead = 0;
      else if (ahead < least || ahead > most) ahead = least;
    },
  };
}
