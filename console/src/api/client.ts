import { ApiError, type Client, createClient, type Transport } from '@muster/protocol/client';
import { logout, openConsoleSession, renew } from '@muster/protocol/http';
import { type Credential, headersOf } from './sign-in/credential.ts';
import { createServerClock } from './sign-in/server-clock.ts';
import { BrowserSession } from './sign-in/session.ts';
import { acceptsCookies } from './sign-in/session-cookie.ts';
import { browserStorage } from './sign-in/stored-session.ts';

/** Sends all of the console's HTTP requests. */

/** The orchestrator sent no response: it is down or restarting, or the network failed. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the orchestrator does not answer', { cause });
    this.name = 'Unreachable';
  }
}

/**
 * Reports whether a failed change may still have been applied: there was no response, or the response reports an
 * unknown outcome.
 */
export const mayHaveHappened = (error: unknown): boolean =>
  error instanceof Unreachable || (error instanceof ApiError && error.problem.code === 'outcome_unknown');

/** The orchestrator's clock. Compare timestamps from the API with this clock, not with the browser's. */
export const serverClock = createServerClock(Date.now);

type Request = Parameters<Transport>[0];

async function send(
  { method, url, headers, body, signal, stream }: Request,
  credentials: RequestCredentials,
): ReturnType<Transport> {
  const requestedAt = Date.now();
  let answer: Response;
  try {
    answer = await fetch(url, {
      ...{ method, headers, cache: 'no-store', credentials, redirect: 'error' },
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(error);
  }
  serverClock.observe(answer.headers.get('date'), requestedAt);
  const { status } = answer;
  return {
    status,
    header: (name) => answer.headers.get(name),
    text: () => answer.text().catch((error: unknown) => Promise.reject(new Unreachable(error))),
    ...(stream && answer.ok && answer.body ? { body: piecesOf(answer.body) } : {}),
  };
}

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

const sendWith = (request: Request, credential: Credential): ReturnType<Transport> =>
  send(
    { ...request, headers: { ...request.headers, ...headersOf(credential) } },
    // A request without the page key needs no cookie.
    credential.kind === 'console' ? 'same-origin' : 'omit',
  );

/** Returns a client that sends the given credential. */
const clientWith = (credential: Credential): Client =>
  createClient({ url: '', transport: (request) => sendWith(request, credential) });

/** Returns a client that sends the given token. */
export const clientWithToken = (token: string): Client =>
  clientWith({ kind: 'token', token, expires_at: Number.POSITIVE_INFINITY });

export const session = new BrowserSession({
  calls: {
    renew: (token) => clientWithToken(token)(renew, {}),
    logout: (credential) => clientWith(credential)(logout, {}),
    async openConsole(token) {
      if (!acceptsCookies()) return null;
      // The browser stores the response's cookie only if the request includes credentials.
      const exchange = createClient({
        url: '',
        token: async () => token,
        transport: (request) => send(request, 'same-origin'),
      });
      try {
        const { page_key } = await exchange(openConsoleSession, {});
        return { kind: 'console', page_key };
      } catch (error) {
        if (error instanceof ApiError && error.problem.code === 'origin_refused') return null;
        throw error;
      }
    },
  },
  storage: browserStorage,
  now: serverClock.now,
  after: (ms, act) => {
    const timer = window.setTimeout(act, ms);
    return () => window.clearTimeout(timer);
  },
  isRefusal: (error) => error instanceof ApiError && error.problem.status === 401,
});

/** Maximum number of credentials to try for one request. */
const maxCredentials = 3;

let listening: Promise<void> = Promise.resolve();

/**
 * Delays reads until the event stream is open (live/events.ts). Otherwise, changes between a read and the opening of
 * the stream would be missed. The promise must always resolve.
 */
export function delayReadsUntil(open: Promise<void>): void {
  listening = open;
}

/**
 * Sends a request, and repeats it with the next credential after a 401. This is safe for every method, because a
 * request that receives a 401 has no effect.
 */
async function sendInSession(request: Request, ready?: Promise<void>): ReturnType<Transport> {
  let credential = await session.credential(ready);
  for (let tried = 1; credential !== null; tried++) {
    const answer = await sendWith(request, credential);
    if (answer.status < 400) session.confirm();
    if (answer.status !== 401 || tried === maxCredentials) return answer;
    credential = await session.credentialAfter(credential);
  }
  return await send(request, 'omit');
}

/**
 * Calls an API route.
 * @throws ApiError, Unreachable, or SessionEnded
 */
export const call: Client = createClient({
  url: '',
  transport: (request) => sendInSession(request, request.method === 'GET' && !request.stream ? listening : undefined),
});

/**
 * Like `call`, but does not wait for the event stream. The caller must read the data again with `call`, because it
 * would otherwise miss changes made before the stream opens.
 */
export const callBeforeEvents: Client = createClient({ url: '', transport: (request) => sendInSession(request) });

/**
 * Calls an API route that requires no sign-in.
 * @throws ApiError or Unreachable
 */
export const callWithoutSession: Client = createClient({ url: '', transport: (request) => send(request, 'omit') });
