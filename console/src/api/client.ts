import { ApiError, type Client, createClient, type Transport } from '@muster/protocol/client';
import { logout, renew } from '@muster/protocol/http';
import { createServerClock } from './sign-in/server-clock.ts';
import { createSession } from './sign-in/session.ts';

/** The one way from this page to the orchestrator, and the session that it speaks with. */

/** Nobody answered: the orchestrator is down or restarting, or the network is. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the orchestrator does not answer', { cause });
    this.name = 'Unreachable';
  }
}

/** The time at the orchestrator: what its times are told and compared by. */
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
  serverClock.heard(answer.headers.get('date'));
  const { status } = answer;
  return {
    status,
    header: (name) => answer.headers.get(name),
    text: () => answer.text().catch((error: unknown) => Promise.reject(new Unreachable(error))),
    ...(stream && answer.ok && answer.body ? { body: piecesOf(answer.body) } : {}),
  };
};

/** Browsers differ in whether a stream can be walked by itself. */
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

const clientWith = (token: string) => createClient({ url: '', token: async () => token, transport: send });

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

/** So often one request goes out again with another token. */
const mostTokens = 3;

let heard: Promise<void> = Promise.resolve();

/**
 * What is read from now on waits for this, which ends by itself and never fails: whoever reads first and listens then
 * misses what happens between (live.ts).
 */
export function delayReadsUntil(listening: Promise<void>): void {
  heard = listening;
}

/**
 * Sends; when the token turns out to have ended, sends once more with the next one. A request that was answered 401 did
 * nothing, so that holds for every method.
 */
const sendInSession: Transport = async (request) => {
  if (request.method === 'GET' && !request.stream) await heard;
  let answer = await send(request);
  for (let tokens = 1; tokens < mostTokens && answer.status === 401; tokens++) {
    const { authorization } = request.headers;
    if (authorization === undefined) break;
    const token = await session.tokenAfter(authorization.slice('Bearer '.length));
    if (token === null) break;
    request = { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
    answer = await send(request);
  }
  return answer;
};

/** Calls a route of the API. Throws ApiError, Unreachable or SessionEnded. */
export const call: Client = createClient({ url: '', token: session.token, transport: sendInSession });

/** A client for what is done before there is a session. */
export const callWithoutSession: Client = createClient({ url: '', transport: send });
