import { createRequire } from 'node:module';

/**
 * The client of `api.ts`, in a separate process. It receives one message, sends requests, and replies with one message that
 * contains the figures.
 */
export interface LoadOptions {
  url: string;
  /** Requests to send in turn. If empty, the client sends GET requests to `url`. */
  wishes?: { method: 'GET' | 'PUT'; path: string; body?: string }[];
  /** Tokens to use in turn, so that no session exceeds its rate limit. */
  tokens: string[];
  connections: number;
  seconds: number;
  /** Maximum requests a second over all connections; null for no limit. */
  rate: number | null;
}

export interface LoadSeen {
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Number of requests with a status other than 2xx, or without a response. */
  failed: number;
}

type Autocannon = (options: object) => PromiseLike<{
  requests: { average: number; total: number };
  latency: { p50: number; p99: number };
  non2xx: number;
  errors: number;
}>;
const autocannon = createRequire(import.meta.url)('autocannon') as Autocannon;

process.once('message', async ({ url, wishes = [], tokens, connections, seconds, rate }: LoadOptions) => {
  const requests = Array.from({ length: Math.max(tokens.length, wishes.length) }, (_, turn) => {
    const request = wishes.length === 0 ? { method: 'GET' as const } : wishes[turn % wishes.length]!;
    const typed = 'body' in request ? { 'content-type': 'application/json' } : {};
    return { ...request, headers: { authorization: `Bearer ${tokens[turn % tokens.length]}`, ...typed } };
  });
  const seen = await autocannon({
    url,
    connections,
    duration: seconds,
    requests,
    ...(rate === null ? {} : { overallRate: rate }),
  });
  process.send?.({
    requests: seen.requests.total,
    requestsPerSecond: seen.requests.average,
    p50Ms: seen.latency.p50,
    p99Ms: seen.latency.p99,
    failed: seen.non2xx + seen.errors,
  } satisfies LoadSeen);
  process.disconnect();
});
