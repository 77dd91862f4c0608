import type { Fault } from './errors.ts';
import {
  type AnswerOf,
  apiPrefix,
  type CallOf,
  mediaOf,
  type Route,
  type StreamedAnswer,
} from './http/definition/route.ts';
import { isUnixTime } from './unix-time.ts';

/** Problem details (RFC 9457) of a response with a status outside 2xx. The schema is in the orchestrator's openapi.ts. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  errors?: Fault[];
  /** When the stale plan was requested, in Unix seconds. Only with the code `plan_stale`. */
  planned_at?: number;
}

export class ApiError extends Error {
  readonly problem: Problem;
  /** Seconds to wait before a retry, if the server requests it. */
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
  /** Returns the bytes of an archive, which replaces the body. Called once for each attempt. */
  archive?: () => AsyncIterable<Uint8Array>;
  signal: AbortSignal | undefined;
  /** If true and the status is 2xx, the transport resolves when the headers arrive, and `body` streams the content. */
  stream?: boolean;
}) => Promise<{
  status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  /** Content of a 2xx response if `stream` is true; replaces `text`. */
  body?: AsyncIterable<Uint8Array>;
}>;

export interface ClientOptions {
  /** The orchestrator's base address, such as `https://127.0.0.1:4748`. */
  url: string;
  /** Returns the token for a request that requires a sign-in session; null to send none. May sign in. */
  token?: () => Promise<string | null>;
  transport: Transport;
}

export interface CallSettings {
  /** Accepts status 202 with a `Location` instead of waiting for the result. */
  respondAsync?: boolean;
  /** Reads all pages of a list. */
  all?: boolean;
  /**
   * Reads pages until there are this many items. A page may be shorter than its `limit`, because pages are also limited
   * in bytes.
   */
  atMost?: number;
  signal?: AbortSignal;
  /** Returns the bytes of an archive, which replaces the body on routes that accept one. */
  archive?: () => AsyncIterable<Uint8Array>;
}

export type Client = <R extends Route>(route: R, call: CallOf<R> & CallSettings) => Promise<AnswerOf<R>>;

/** Returns the path of a call with its encoded parameters, and the query. */
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
 * Creates a client that is typed by the route table.
 * @returns a function that calls a route; throws ApiError for a status outside 2xx, and errors from the transport
 */
export function createClient(options: ClientOptions): Client {
  return async (route, call) => {
    const { params, query, body, respondAsync, all, atMost, signal, archive } = call as {
      params?: Record<string, string>;
      query?: Record<string, unknown>;
      body?: unknown;
    } & CallSettings;
    const accepted = new Set(Object.keys(route.answers).flatMap((status) => mediaOf(route, Number(status))));
    // Errors are JSON on every route.
    const headers: Record<string, string> = { accept: [...accepted.add('application/json')].join(', ') };
    if (route.access !== 'anyone') {
      const token = await options.token?.();
      if (token) headers.authorization = `Bearer ${token}`;
    }
    if (archive !== undefined) headers['content-type'] = 'application/gzip';
    else if (body !== undefined) headers['content-type'] = 'application/json';
    if (respondAsync) headers.prefer = 'respond-async';
    const send = (path: string) =>
      options.transport({
        method: route.method,
        url: options.url.replace(/\/$/, '') + path,
        headers,
        body: body === undefined || archive !== undefined ? undefined : JSON.stringify(body),
        ...(archive === undefined ? {} : { archive }),
        signal,
        stream: route.media !== undefined,
      });
    const path = pathOf(route, params, query);
    let answer = await send(path);
    if (route.media?.[answer.status] !== undefined) return streamedAnswer(answer) as never;
    const read = async () => {
      const text = await answer.text();
      if (answer.status < 200 || answer.status > 299)
        throw apiErrorOf(answer.status, text, answer.header('retry-after'));
      return text === '' ? undefined : JSON.parse(text);
    };
    const first = await read();
    const max = all ? Number.POSITIVE_INFINITY : (atMost ?? 0);
    if (max === 0 || !route.paged || !Array.isArray(first)) return first as never;
    const items: unknown[] = first;
    for (
      let next = nextPath(answer.header('link'), path);
      next !== null && items.length < max;
      next = nextPath(answer.header('link'), path)
    ) {
      answer = await send(next);
      for (const item of (await read()) as unknown[]) items.push(item);
    }
    return (items.length > max ? items.slice(0, max) : items) as never;
  };
}

/** Returns the path of the next page; null on the last page or if the link leads to another list. */
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

/** Returns the error for a response with a status outside 2xx. */
export function apiErrorOf(status: number, text: string, retryAfter: string | null): ApiError {
  const wait = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
  try {
    const { planned_at, ...problem } = JSON.parse(text) as Problem;
    if (typeof problem.code === 'string' && typeof problem.detail === 'string')
      return new ApiError(
        isUnixTime(planned_at) && Number.isInteger(planned_at) ? { ...problem, planned_at } : problem,
        wait,
      );
  } catch {
    // The response is not from the orchestrator, but perhaps from a proxy.
  }
  const detail = `the response with status ${status} is not from an orchestrator: check the address`;
  return new ApiError(
    { type: 'about:blank', title: 'Unexpected answer', status, detail, instance: '', code: 'unexpected_answer' },
    wait,
  );
}
