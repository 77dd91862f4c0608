import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The client for `fleet.ts`, in a separate process. It sends requests at scheduled times without waiting for earlier
 * responses, and measures the latency of each response from the scheduled time. It receives one message and replies
 * with one.
 */
export interface SteadyLoadOptions {
  url: string;
  ca: string;
  token: string;
  paths: string[];
  perSecond: number;
  seconds: number;
}

export interface SteadyLoadSeen {
  /** Milliseconds from the scheduled time of each request to the last byte of its response. */
  latencies: number[];
  /** Number of requests whose connection was reset before the response was complete. */
  resets: number;
  /** Number of requests with another error, or with a status other than 2xx. */
  failures: number;
  /** The message of the first of these failures; null if there was none. */
  failed: string | null;
}

process.once('message', async ({ url, ca, token, paths, perSecond, seconds }: SteadyLoadOptions) => {
  const agent = new Agent({ keepAlive: true, ca });
  const headers = { authorization: `Bearer ${token}` };
  const latencies: number[] = [];
  let resets = 0;
  let failures = 0;
  let failed: string | null = null;
  const fail = (message: string) => {
    failures++;
    failed ??= message;
  };

  const ask = (path: string, due: number) =>
    answered(path, due).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET') resets++;
      else fail(`${path}: ${error.message}`);
    });

  async function answered(path: string, due: number): Promise<void> {
    const outgoing = request(new URL(path, url), { agent, headers, checkServerIdentity: () => undefined });
    // A reset after the headers also fails the request. Without this listener, the error event would terminate this
    // process.
    outgoing.on('error', () => {});
    outgoing.end();
    const [answer] = await once(outgoing, 'response');
    for await (const _ of answer);
    latencies.push(performance.now() - due);
    if (answer.statusCode < 200 || answer.statusCode > 299) fail(`${path} returned ${answer.statusCode}`);
  }

  // Warm-up: opens the connections and compiles the code.
  for (let round = 0; round < 20; round++) await Promise.all(paths.slice(0, 8).map((path) => ask(path, 0)));
  latencies.length = 0;
  resets = 0;
  failures = 0;
  failed = null;
  const asking: Promise<void>[] = [];
  const from = performance.now();
  let due = from;
  for (let turn = 0; due < from + seconds * 1000; turn++) {
    // Exponentially distributed intervals, because requests from independent clients form a Poisson process.
    due += (-Math.log(1 - Math.random()) * 1000) / perSecond;
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    asking.push(ask(paths[turn % paths.length]!, due));
  }
  await Promise.all(asking);
  agent.destroy();
  const seen: SteadyLoadSeen = { latencies, resets, failures, failed };
  // Disconnecting before the callback would drop data that the pipe has not yet accepted.
  process.send?.(seen, () => process.disconnect());
});
