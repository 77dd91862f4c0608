import { sleep } from './sleep.ts';

const minBackoffMs = 500;
const maxBackoffMs = 10_000;
/** Failures while the orchestrator answers, after which its files are those of another version. */
const maxFailures = 3;

/** Delays between attempts to load a file, in milliseconds. */
export function* backoffs(): Generator<number, never> {
  for (let delay = minBackoffMs; ; delay = Math.min(delay * 2, maxBackoffMs)) yield delay;
}

/** Reports whether the orchestrator answers. */
export const isReachable = (): Promise<boolean> =>
  fetch('/healthz', { cache: 'no-store', credentials: 'omit' }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * Imports a module. Tries again while the orchestrator does not answer.
 * @throws the error of the import if the orchestrator answers, but does not have the file
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
