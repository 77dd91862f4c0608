import { createHash } from 'node:crypto';

/**
 * Returns a number in [0, 1) that depends on `MUSTER_SAMPLE_SEED`, which `npm test` sets and prints, and on `use`,
 * such as the name of a test.
 */
export function seededRandom(use: string): number {
  const seed = process.env.MUSTER_SAMPLE_SEED;
  if (seed === undefined) return Math.random();
  return createHash('sha256').update(`${seed} ${use}`).digest().readUInt32BE() / 2 ** 32;
}

/** Reports whether this is an `npm test` run, which omits tests that a direct run of a file includes. */
export const isSampling = (): boolean =>
  process.env.MUSTER_SAMPLE_SEED !== undefined && process.env.MUSTER_EVERY_STEP === undefined;

/**
 * Selects random but evenly spread steps, such as those at which a test kills the agent. Selects all steps with
 * `MUSTER_EVERY_STEP`, which `npm run soak -- kill-steps` sets. A failing test names its step, and `MUSTER_SAMPLE_SEED`
 * repeats the selection of a run.
 * @param random a number in [0, 1)
 */
export function sampled<T>(
  steps: readonly T[],
  maxSteps: number,
  everyStep = process.env.MUSTER_EVERY_STEP !== undefined,
  random = seededRandom(`${maxSteps} of ${steps.length}`),
): T[] {
  if (everyStep || steps.length <= maxSteps) return [...steps];
  return Array.from({ length: maxSteps }, (_, i) => steps[Math.floor(((i + random) * steps.length) / maxSteps)] as T);
}

/**
 * Returns a function that reports whether to define the next test: true for every n-th test, from a random start.
 * Outside `npm test`, it always returns true.
 * @param use name of the set of tests
 */
export function everyNth(n: number, use: string, everyStep = !isSampling()) {
  let at = Math.floor(seededRandom(use) * n);
  return (): boolean => everyStep || at++ % n === 0;
}
