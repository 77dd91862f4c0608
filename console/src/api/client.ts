import { ApiError, type Client, createClient, type Transport } from '@muster/protocol/client';
import { getSession, logout, renew } from '@muster/protocol/http';
import { createSession } from './session.ts';

/** The one way from this page to the orchestrator, and the session that it speaks with. */

/** Nobody answered: the orchestrator is down or restarting, or the network is. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the orchestrator does not answer', { cause });
    this.name = 'Unreachable';
  }
}

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
    person: (token) => clientWith(token)(getSession, {}),
    renew: (token) => clientWith(token)(renew, {}),
    logout: (token) => clientWith(token)(logout, {}),
  },
  now: Date.now,
  after: (ms, act) => {
    const timer = window.setTimeout(act, ms);
    return () => window.clearTimeout(timer);
  },
  isRefusal: (error) => error instanceof ApiError && error.problem.status === 401,
});

/**
 * Sends; when the token turns out to have ended, sends once more with the next one. A request that was answered 401 did
 * nothing, so that holds for every method.
 */
const sendInSession: Transport = async (request) => {
  const answer = await send(request);
  const { authorization } = request.headers;
  if (answer.status !== 401 || authorization === undefined) return answer;
  session.refused(authorization.slice('Bearer '.length));
  const token = await session.token();
  if (token === null) return answer;
  return send({ ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } });
};

/** Calls a route of the API. Throws ApiError, Unreachable or SessionEnded. */
export const call: Client = createClient({ url: '', token: session.token, transport: sendInSession });

/** A client for what is done before there is a session. */
export const callOpenly: Client = createClient({ url: '', transport: send });
