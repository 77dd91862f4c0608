import type { Transport } from '@muster/protocol/client';

const maxTries = 4;

/**
 * Wraps a transport so that it retries a request whose connection is reset before the response, at most three times. A
 * server may close an idle connection while a request is in transit, and such a reset must not fail a bench.
 * @param onReset called with the path of the request for each reset
 */
export function retryingResets(transport: Transport, onReset: (path: string) => void): Transport {
  return async (request) => {
    for (let attempt = 1; ; attempt++)
      try {
        return await transport(request);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET' || attempt === maxTries) throw error;
        onReset(new URL(request.url).pathname);
      }
  };
}
