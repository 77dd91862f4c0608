import { sleep } from './sleep.ts';

const minBackoffMs = 500;
const maxBackoffMs = 10_000;
/**
 * Number of failures, while the orchestrator responds, after which its files are assumed to be from another version.
 */
const maxFailures = 3;

/** Delays between attempts to load a file, in milliseconds. */
export function* backoffs(): Generator<number, never> {
  for (let delay = minBackoffMs; ; delay = Math.min(delay * 2, maxBackoffMs)) yield delay;
}

/** Reports whether the orchestrator responds. */
export const isReachable = (): Promise<boolean> =>
  fetch('/healthz', { cache: 'no-store', credentials: 'omit' }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * Imports a module. Tries again while the orchestrator does not respond.
 * @throws the import's error if the orchestrator responds but does not have the file
 */
export async function loadCode<T>(load: () => Promise<T>): Promise<T> {
  const delays = backoffs();
  for (let failures = 0; ; ) {
    try {
      return await load();
    } catch (error) {
      if ((await isReachable()) && ++failures === maxFailures) throw error;
      await sleep(delays.next().value);
    }
  }
}
