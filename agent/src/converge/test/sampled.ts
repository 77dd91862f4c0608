/**
 * The steps that a kill loop tries: a sample spread over all of them, another in each run; all with `MUSTER_EVERY_STEP`,
 * which `npm run soak -- kill-steps` sets. A failure names its step.
 * @param random 0 to 1
 */
export function sampled<T>(
  steps: readonly T[],
  most: number,
  everyStep = process.env.MUSTER_EVERY_STEP !== undefined,
  random = Math.random(),
): T[] {
  if (everyStep || steps.length <= most) return [...steps];
  return Array.from({ length: most }, (_, i) => steps[Math.floor(((i + random) * steps.length) / most)] as T);
}
