/** How time passes in a replay. Pure. */

export const speeds = [0.5, 1, 2, 4, 8, 16] as const;

/** A pause that is longer is passed over, but for the moment before it ends. */
const longestIdle = 1;
const leadIn = 0.3;

/**
 * Where a replay is after some time. All in seconds.
 * @param elapsed since the last step, of the clock of whoever looks
 * @param nextAt when something is shown next; null: nothing more
 */
export function advance(
  position: number,
  elapsed: number,
  options: { readonly speed: number; readonly skipIdle: boolean; readonly nextAt: number | null; readonly end: number },
): number {
  const next = position + elapsed * options.speed;
  if (options.nextAt === null) return options.skipIdle ? options.end : Math.min(next, options.end);
  if (options.skipIdle && options.nextAt - position > longestIdle) return Math.max(next, options.nextAt - leadIn);
  return Math.min(next, options.end);
}

/** Of checkpoints in order, the last that is not beyond an event; -1 when there is none. */
export function checkpointBefore(counts: readonly number[], count: number): number {
  let found = -1;
  for (const [index, at] of counts.entries()) if (at <= count) found = index;
  return found;
}
