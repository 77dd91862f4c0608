import { Unreachable } from '../client.ts';
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

/** Milliseconds to wait for a response. A proxy may accept connections while the orchestrator is stopped. */
const responseLimitMs = 10_000;

/** Reports whether the orchestrator responds. */
const isReachable = (): Promise<boolean> =>
  fetch('/healthz', {
    cache: 'no-store',
    credentials: 'omit',
    signal: AbortSignal.timeout(responseLimitMs),
  }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * Milliseconds after the page starts during which imports skip the check, because the orchestrator has just delivered
 * the page.
 */
const newPageMs = 5_000;

/**
 * Imports a module if the orchestrator responds. Most browsers remember a failed request for a module until the page is
 * reloaded (https://github.com/whatwg/html/issues/6768), so requests that cannot succeed are not sent.
 * @throws {Unreachable} if the orchestrator does not respond; the import's error if it responds but lacks the file
 */
export async function importIfReachable<T>(load: () => Promise<T>): Promise<T> {
  if (performance.now() > newPageMs && !(await isReachable())) throw new Unreachable(null);
  try {
    return await load();
  } catch (error) {
    throw (await isReachable()) ? error : new Unreachable(error);
  }
}

/**
 * Imports a module. Tries again while the orchestrator does not respond.
 * @throws the import's error if the orchestrator responds but does not have the file
 */
export async function loadCode<T>(load: () => Promise<T>): Promise<T> {
  const delays = backoffs();
  for (let failures = 0; ; ) {
    try {
      return await importIfReachable(load);
    } catch (error) {
      if (!(error instanceof Unreachable) && ++failures === maxFailures) throw error;
      await sleep(delays.next().value);
    }
  }
}
