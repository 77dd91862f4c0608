import type { Fault } from './errors.ts';
import { type AnswerOf, apiPrefix, type CallOf, mediaOf, type Route, type StreamedAnswer } from './http/route.ts';

/** What an answer outside 2xx says, as RFC 9457 problem details. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  errors?: Fault[];
}

export class ApiError extends Error {
  readonly problem: Problem;
  /** Seconds, when the server asked to wait. */
  readonly retryAfter: number | null;
  constructor(problem: Problem, retryAfter: number | null = null) {
    super(problem.detail);
    this.name = 'ApiError';
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
}

export type Transport = (request: {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | undefined;
  signal: AbortSignal | undefined;
  /** Resolve as soon as the headers of a 2xx are there, with its `body` as it comes. */
  stream?: boolean;
}) => Promise<{
  status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  /** In place of `text`, when `stream` was asked for and the status is a 2xx. */
  body?: AsyncIterable<Uint8Array>;
}>;

export interface ClientOptions {
  /** Where the orchestrator's API is, e.g. `https://127.0.0.1:4748`. */
  url: string;
  /** Called for every request that needs a session; may sign in. Null: none to send. */
  token?: () => Promise<string | null>;
  transport: Transport;
}

export interface CallSettings {
  /** Take 202 and a `Location` rather than waiting. */
  respondAsync?: boolean;
  /** Of a list that is given in pages, ask for one after the other and give back all of it. */
  all?: boolean;
  /** Like `all`, up to so many items. A page may have fewer items than its `limit`: pages have a limit of bytes, too. */
  atMost?: number;
  signal?: AbortSignal;
}

export type Client = <R extends Route>(route: R, call: CallOf<R> & CallSettings) => Promise<AnswerOf<R>>;

/** The request line of a call: path with its parameters filled in and encoded, and the query. */
export function pathOf(route: Route, params: Record<string, string> = {}, query: Record<string, unknown> = {}): string {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined) throw new TypeError(`${route.id} needs the parameter ${name}`);
    return encodeURIComponent(value);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null) search.set(name, String(value));
  const text = search.toString();
  return apiPrefix + path + (text === '' ? '' : `?${text}`);
}

/**
 * A client typed by the route table.
 * @returns a function that calls one route; it throws ApiError for every answer outside 2xx, and whatever the transport
 *   throws when there is none
 */
export function createClient(options: ClientOptions): Client {
  return async (route, call) => {
    const { params, query, body, respondAsync, all, atMost, signal } = call as {
      params?: Record<string, string>;
      query?: Record<string, unknown>;
      body?: unknown;
    } & CallSettings;
    const accepted = new Set(Object.keys(route.answers).flatMap((status) => mediaOf(route, Number(status))));
    // What goes wrong is JSON on every route.
    const headers: Record<string, string> = { accept: [...accepted.add('application/json')].join(', ') };
    if (route.access !== 'anyone') {
      const token = await options.token?.();
      if (token) headers.authorization = `Bearer ${token}`;
    }
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (respondAsync) headers.prefer = 'respond-async';
    const send = (path: string) =>
      options.transport({
        method: route.method,
        url: options.url.replace(/\/$/, '') + path,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
        stream: route.media !== undefined,
      });
    const path = pathOf(route, params, query);
    let answer = await send(path);
    if (route.media?.[answer.status] !== undefined) return streamedAnswer(answer) as never;
    const read = async () => {
      const text = await answer.text();
      if (answer.status < 200 || answer.status > 299)
        throw problemOf(answer.status, text, answer.header('retry-after'));
      return text === '' ? undefined : JSON.parse(text);
    };
    const first = await read();
    const most = all ? Number.POSITIVE_INFINITY : (atMost ?? 0);
    if (most === 0 || !route.paged || !Array.isArray(first)) return first as never;
    const items: unknown[] = first;
    for (
      let next = nextPath(answer.header('link'), path);
      next !== null && items.length < most;
      next = nextPath(answer.header('link'), path)
    ) {
      answer = await send(next);
      for (const item of (await read()) as unknown[]) items.push(item);
    }
    return (items.length > most ? items.slice(0, most) : items) as never;
  };
}

/** The address of the next part of a list; null when there is none, or when it leads to another list. */
function nextPath(link: string | null, path: string): string | null {
  const next = /<([^>]*)>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
  return next?.split('?')[0] === path.split('?')[0] ? next! : null;
}

function streamedAnswer(answer: Awaited<ReturnType<Transport>>): StreamedAnswer {
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode(await answer.text());
  }
  const type = (answer.header('content-type') ?? '').split(';', 1)[0] as string;
  return { type: type.trim().toLowerCase(), body: answer.body ?? whole() };
}

/** What an answer outside 2xx says. */
export function problemOf(status: number, text: string, retryAfter: string | null): ApiError {
  const wait = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.code === 'string' && typeof problem.detail === 'string') return new ApiError(problem, wait);
  } catch {
    // Not ours: a proxy on the way, perhaps.
  }
  const detail = `the answer was ${status} and not in Muster’s form: is this the address of an orchestrator?`;
  return new ApiError(
    { type: 'about:blank', title: 'Unexpected answer', status, detail, instance: '', code: 'unexpected_answer' },
    wait,
  );
}
