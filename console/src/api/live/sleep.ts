/** Resolves after `ms` milliseconds, or early if aborted. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = () => {
      window.clearTimeout(timer);
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const timer = window.setTimeout(over, ms);
    signal?.addEventListener('abort', over);
  });
