export const speeds = [0.5, 1, 2, 4, 8, 16] as const;

/** With `skipIdle`, playback skips pauses of more than `maxIdle` seconds, except their last `leadIn` seconds. */
const maxIdle = 1;
const leadIn = 0.3;

/**
 * Returns the playback position after `elapsed` seconds. All times are in seconds.
 * @param elapsed real time since the last call
 * @param options.nextAt time of the next event; null if there is none
 */
export function advance(
  position: number,
  elapsed: number,
  options: { readonly speed: number; readonly skipIdle: boolean; readonly nextAt: number | null; readonly end: number },
): number {
  const next = position + elapsed * options.speed;
  if (options.nextAt === null) return options.skipIdle ? options.end : Math.min(next, options.end);
  if (options.skipIdle && options.nextAt - position > maxIdle) return Math.max(next, options.nextAt - leadIn);
  return Math.min(next, options.end);
}

/**
 * Returns the index of the last checkpoint at or before an event, or -1 if there is none.
 * @param counts number of events before each checkpoint, ascending
 */
export function checkpointBefore(counts: readonly number[], count: number): number {
  let found = -1;
  for (const [index, at] of counts.entries()) if (at <= count) found = index;
  return found;
}
