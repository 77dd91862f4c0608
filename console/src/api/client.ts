import { ApiError, type Client, createClient, type Transport } from '@muster/protocol/client';
import { logout, renew } from '@muster/protocol/http';
import { createServerClock } from './sign-in/server-clock.ts';
import { createSession } from './sign-in/session.ts';

/** Sends all of the console's HTTP requests. */

/** No response arrived: the orchestrator is down or restarting, or the network failed. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the orchestrator does not answer', { cause });
    this.name = 'Unreachable';
  }
}

/** The orchestrator's clock. Compare timestamps from the API with this clock, not with the browser's. */
export const serverClock = createServerClock(Date.now);

const send: Transport = async ({ method, url, headers, body, signal, stream }) => {
  let answer: Response;
  try {
    answer = await fetch(url, {
      ...{ method, headers, cache: 'no-store', credentials: 'omit', redirect: 'error' },
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(error);
  }
  serverClock.observe(answer.headers.get('date'));
  const { status } = answer;
  return {
    status,
    header: (name) => answer.headers.get(name),
    text: () => answer.text().catch((error: unknown) => Promise.reject(new Unreachable(error))),
    ...(stream && answer.ok && answer.body ? { body: piecesOf(answer.body) } : {}),
  };
};

/** Yields the chunks of a stream. Some browsers do not support `for await` on a ReadableStream. */
async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Returns a client that sends this token. */
export const clientWith = (token: string): Client =>
  createClient({ url: '', token: async () => token, transport: send });

export const session = createSession({
  calls: {
    renew: (token) => clientWith(token)(renew, {}),
    logout: (token) => clientWith(token)(logout, {}),
  },
  now: serverClock.now,
  after: (ms, act) => {
    const timer = window.setTimeout(act, ms);
    return () => window.clearTimeout(timer);
  },
  isRefusal: (error) => error instanceof ApiError && error.problem.status === 401,
});

/** Maximum number of tokens to try for one request. */
const maxTokens = 3;

let listening: Promise<void> = Promise.resolve();

/**
 * Delays reads until the event stream is open (live/events.ts). Otherwise, a change between a read and when the stream
 * opens would be missed. The promise must always resolve.
 */
export function delayReadsUntil(open: Promise<void>): void {
  listening = open;
}

/**
 * Sends a request, and repeats it with the next token after a 401. This is safe for every method, because a request
 * that gets a 401 has no effect.
 */
const sendInSession: Transport = async (request) => {
  let answer = await send(request);
  for (let tokens = 1; tokens < maxTokens && answer.status === 401; tokens++) {
    const { authorization } = request.headers;
    if (authorization === undefined) break;
    const token = await session.tokenAfter(authorization.slice('Bearer '.length));
    if (token === null) break;
    request = { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
    answer = await send(request);
  }
  return answer;
};

/**
 * Calls an API route.
 * @throws ApiError, Unreachable, or SessionEnded
 */
export const call: Client = createClient({
  url: '',
  token: session.token,
  transport: async (request) => {
    if (request.method === 'GET' && !request.stream) await listening;
    return sendInSession(request);
  },
});

/**
 * Like `call`, but does not wait for the event stream. The caller must read the data again with `call`, because a
 * change before the stream opens would be missed.
 */
export const callBeforeEvents: Client = createClient({ url: '', token: session.token, transport: sendInSession });

/**
 * Calls an API route that requires no sign-in.
 * @throws ApiError or Unreachable
 */
export const callWithoutSession: Client = createClient({ url: '', transport: send });
