import { type ErrorCode, errorKinds } from '@muster/protocol';
import type { Problem } from '@muster/protocol/client';
import {
  type AnswerOf,
  apiPrefix,
  type CallOf,
  logout,
  openConsoleSession,
  type Route,
  routes,
} from '@muster/protocol/http';
import { onTestFinished, vi } from 'vitest';

/**
 * A fake orchestrator for component tests. It replaces only `fetch`, so that tests run the console's own code above
 * HTTP. The route table types the responses, and its schemas validate them. A request without a configured response
 * fails the test.
 */

/** A received request: path and query parameters as text, and the body as JSON. */
export interface Received {
  readonly params: Record<string, string>;
  readonly query: Record<string, string>;
  readonly body: unknown;
}

type Input<R extends Route> = Omit<Received, 'body'> & {
  readonly body: CallOf<R> extends { body?: infer Body } ? Body : undefined;
};
/** For a streamed response, the whole text. */
type Given<R extends Route> = R extends { media: object } ? string : AnswerOf<R>;

type Respond = (received: Received) => Promise<Response>;

export interface FakeApi {
  /**
   * Responds to a route with a value, or with the result of calling a function with the request, which may be a
   * promise. Replaces an earlier response.
   */
  answer<R extends Route>(route: R, answer: Given<R> | ((received: Input<R>) => Given<R> | Promise<Given<R>>)): void;
  /** Responds to routes with the examples in the route table. */
  answerExamples(...routes: readonly Route[]): void;
  /** Responds to a route with an error. */
  refuse(route: Route, code: ErrorCode, detail?: string, fields?: Partial<Problem>): void;
  /** Never responds to requests to a route, so that the page stays in its loading state. */
  hold(route: Route): void;
  /** Returns the requests to a route so far, oldest first. */
  received<R extends Route>(route: R): readonly Input<R>[];
}

interface Matcher {
  readonly route: Route;
  readonly pattern: RegExp;
}

/** Paths without parameters come first, so that `/modules/validate` does not match as the module `validate`. */
const matchers: readonly Matcher[] = routes
  .toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)
  .map((route) => ({
    route,
    pattern: new RegExp(`^${apiPrefix}${route.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`),
  }));

function match(method: string, path: string): { route: Route; params: Record<string, string> } | null {
  for (const { route, pattern } of matchers) {
    const groups = route.method === method ? pattern.exec(path) : null;
    if (groups === null) continue;
    const params = Object.entries(groups.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
    return { route, params: Object.fromEntries(params) };
  }
  return null;
}

const successStatus = (route: Route): number => Number(Object.keys(route.answers)[0]);

function responseOf(route: Route, value: unknown): Response {
  const status = successStatus(route);
  if (value === undefined) return new Response(null, { status });
  const media = route.media?.[status];
  if (media !== undefined)
    return new Response(String(value), { status, headers: { 'content-type': [media].flat()[0] as string } });
  const text = JSON.stringify(value);
  route.answers[status]?.parse(JSON.parse(text));
  return new Response(text, { status, headers: { 'content-type': 'application/json' } });
}

function problemResponse(code: ErrorCode, detail: string, fields: Partial<Problem> = {}): Response {
  const { status, title } = errorKinds[code];
  const problem: Problem = { type: 'about:blank', title, status, detail, instance: 'request-1', code, ...fields };
  return Response.json(problem, { status });
}

/** Installs a fake orchestrator until the test finishes. */
export function fakeApi(): FakeApi {
  const responders = new Map<string, Respond>([
    [logout.id, async () => responseOf(logout, undefined)],
    [openConsoleSession.id, async () => responseOf(openConsoleSession, openConsoleSession.example.answer)],
  ]);
  const requests = new Map<string, Received[]>();
  const faults: unknown[] = [];

  const respond = async (url: string, init: RequestInit): Promise<Response> => {
    const { pathname, searchParams } = new URL(url, 'https://muster.test');
    if (pathname === '/healthz') return new Response();
    const found = match(init.method ?? 'GET', pathname);
    const responder = found && responders.get(found.route.id);
    if (!responder) throw new Error(`the test has no response for ${init.method} ${pathname} (${found?.route.id})`);
    const received: Received = {
      params: found.params,
      query: Object.fromEntries(searchParams),
      body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined,
    };
    requests.set(found.route.id, [...(requests.get(found.route.id) ?? []), received]);
    return responder(received);
  };
  vi.stubGlobal('fetch', (url: string, init: RequestInit = {}) =>
    respond(url, init).catch((error: unknown) => {
      faults.push(error);
      return problemResponse('internal', String(error));
    }),
  );
  onTestFinished(() => {
    vi.unstubAllGlobals();
    if (faults.length > 0) throw faults[0];
  });

  return {
    answer: (route, answer) =>
      void responders.set(route.id, async (received) =>
        responseOf(route, typeof answer === 'function' ? await answer(received as never) : answer),
      ),
    answerExamples(...examples) {
      for (const route of examples) responders.set(route.id, async () => responseOf(route, route.example.answer));
    },
    refuse: (route, code, detail = errorKinds[code].title, fields = {}) =>
      void responders.set(route.id, async () => problemResponse(code, detail, fields)),
    hold: (route) => void responders.set(route.id, () => new Promise(() => {})),
    received: (route) => (requests.get(route.id) ?? []) as never,
  };
}
