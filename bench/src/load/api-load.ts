import { createRequire } from 'node:module';

/**
 * The client for `api.ts`, in a separate process. Opens its connections after it receives one message. Sends the
 * message `open` and begins to measure when every connection has received a response, because the first responses wait
 * for all TLS handshakes. The last message contains the figures.
 */
export interface LoadOptions {
  url: string;
  /** Requests to send in turn. If empty, the client sends GET requests to `url`. */
  wishes?: { method: 'GET' | 'PUT'; path: string; body?: string }[];
  /** Tokens to use in turn, so that no session exceeds its rate limit. */
  tokens: string[];
  connections: number;
  /** Duration of the measurement, from the message `open`. */
  seconds: number;
  /** Maximum requests a second over all connections; null for no limit. */
  rate: number | null;
}

export interface LoadSeen {
  requestsPerSecond: number;
  /** Milliseconds from each request until its response is complete, for responses with a status of 2xx. */
  latencies: number[];
  /** Number of failed requests by status other than 2xx, or by error message if there was no response. */
  failures: Record<string, number>;
}

interface Run extends PromiseLike<unknown> {
  on(event: 'response', listener: (connection: object, status: number, bytes: number, ms: number) => void): void;
  on(event: 'reqError', listener: (error: Error) => void): void;
  stop(): void;
}
const autocannon = createRequire(import.meta.url)('autocannon') as (options: object) => Run;

/** Maximum seconds until all connections are open, and for the end of the run. */
const maxOpenSecs = 30;

process.once('message', async ({ url, wishes = [], tokens, connections, seconds, rate }: LoadOptions) => {
  const requests = Array.from({ length: Math.max(tokens.length, wishes.length) }, (_, turn) => {
    const request = wishes.length === 0 ? { method: 'GET' as const } : wishes[turn % wishes.length]!;
    const typed = 'body' in request ? { 'content-type': 'application/json' } : {};
    return { ...request, headers: { authorization: `Bearer ${tokens[turn % tokens.length]}`, ...typed } };
  });
  const run = autocannon({
    url,
    connections,
    // An upper bound. `stop` ends the run earlier.
    duration: maxOpenSecs + seconds,
    requests,
    // Without this option, the client would add estimated latencies for requests that it did not send.
    ignoreCoordinatedOmission: true,
    ...(rate === null ? {} : { overallRate: rate }),
  });
  const opening = new Set<object>();
  const latencies: number[] = [];
  let openedAt = 0;
  const failures: Record<string, number> = {};
  const countFailure = (cause: string) => {
    failures[cause] = (failures[cause] ?? 0) + 1;
  };
  run.on('reqError', (error) => countFailure(error.message));
  run.on('response', (connection, status, _bytes, ms) => {
    const succeeded = status >= 200 && status < 300;
    if (!succeeded) countFailure(`status ${status}`);
    if (openedAt > 0) {
      if (succeeded) latencies.push(ms);
    } else if (opening.add(connection).size === connections) {
      openedAt = performance.now();
      process.send?.('open');
      setTimeout(() => run.stop(), seconds * 1000);
    }
  });
  await run;
  const secs = (performance.now() - openedAt) / 1000;
  const figures: LoadSeen = {
    requestsPerSecond: latencies.length / secs,
    latencies,
    failures,
  };
  // Disconnecting before the callback would drop data that the pipe has not yet accepted.
  process.send?.(figures, () => process.disconnect());
});
