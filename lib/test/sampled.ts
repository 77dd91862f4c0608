/**
 * Selects random but evenly spread steps at which a test kills the agent. Selects all steps with `MUSTER_EVERY_STEP`,
 * which `npm run soak -- kill-steps` sets. A failing test names its step.
 * @param random a number in [0, 1)
 */
export function sampled<T>(
  steps: readonly T[],
  maxSteps: number,
  everyStep = process.env.MUSTER_EVERY_STEP !== undefined,
  random = Math.random(),
): T[] {
  if (everyStep || steps.length <= maxSteps) return [...steps];
  return Array.from({ length: maxSteps }, (_, i) => steps[Math.floor(((i + random) * steps.length) / maxSteps)] as T);
}
