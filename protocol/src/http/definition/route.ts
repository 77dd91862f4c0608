import type { z } from 'zod';
import type { ErrorCode } from '../../errors.ts';

/**
 * A route as data. The server registers it, the client calls it, the OpenAPI document describes it, and a test requires
 * that every served route is in the table.
 */
export interface Route {
  /** operationId, camelCase, unique. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `/api/v1`, parameters in braces. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** `anyone` needs no sign-in session; `operator` needs one; `admin` needs one with that role. */
  readonly access: 'anyone' | 'operator' | 'admin';
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Headers that only this route reads, in lower case. */
  readonly headers?: z.ZodObject;
  readonly body?: z.ZodType;
  /** An absent body is read as `{}`. */
  readonly bodyOptional?: boolean;
  /** Bytes; the default is 1 MiB. */
  readonly bodyLimit?: number;
  /** Schema by status code, the usual one first; null: no body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  /**
   * Media type, or the possible media types, by status code, for answers that are not JSON. Such an answer is sent
   * unchanged, and its schema only describes the text.
   */
  readonly media?: Readonly<Record<number, string | readonly [string, ...string[]]>>;
  /** Errors of this route only; `errorsOf` adds those that all routes share. */
  readonly errors: readonly ErrorCode[];
  /** True if the body is secret: a request over plain HTTP from another machine is refused before its body is read. */
  readonly confidential?: boolean;
  /** Accepts `Prefer: respond-async`. */
  readonly respondAsync?: boolean;
  /** Answers with one page of a list; `Link: rel="next"` names the next page. */
  readonly paged?: boolean;
  readonly example: {
    readonly params?: Record<string, string>;
    readonly query?: Record<string, string>;
    readonly body?: unknown;
    readonly answer?: unknown;
  };
}

/** Keeps the literal types of a route. */
export const route = <const R extends Route>(definition: R): R => definition;

export const apiPrefix = '/api/v1';

/** Every code that a route may answer: its own codes, and those that result from its access and input. */
export function errorsOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors);
  if (route.access !== 'anyone') codes.add('unauthenticated');
  if (route.access === 'admin') codes.add('forbidden');
  // Routes without a query or body refuse a request that has one.
  codes.add('invalid_input').add('malformed_request');
  if (route.method !== 'GET')
    for (const code of ['malformed_json', 'body_too_large', 'unsupported_media_type'] as const) codes.add(code);
  codes.add('storage_unavailable');
  if (route.method !== 'GET') codes.add('outcome_unknown').add('storage_full');
  return [...codes.add('rate_limited').add('internal').add('draining')];
}

/** The media types of an answer of a route, the usual one first; empty if the answer has no body. */
export function mediaOf(route: Route, status: number): readonly string[] {
  const media = route.media?.[status];
  if (media !== undefined) return typeof media === 'string' ? [media] : media;
  return route.answers[status] ? ['application/json'] : [];
}

/** True if the answer with this status is not JSON. */
export type IsStreamed<R extends Route, S> = R extends { media: infer M } ? (S extends keyof M ? true : false) : false;

/** An answer that is not JSON, passed on unchanged. */
export interface StreamedAnswer {
  /** The content type, without its parameters. */
  readonly type: string;
  /** Ends with the answer. A reader that stops early closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The type of the first answer of a route. */
export type AnswerOf<R extends Route> = {
  [S in keyof R['answers']]: IsStreamed<R, S> extends true
    ? StreamedAnswer
    : R['answers'][S] extends z.ZodType
      ? z.output<R['answers'][S]>
      : undefined;
}[keyof R['answers']];

type Input<S> = S extends z.ZodType ? z.input<S> : never;
type Part<K extends string, S, Optional = false> = [Input<S>] extends [never]
  ? unknown
  : Optional extends true
    ? { [P in K]?: Input<S> }
    : { [P in K]: Input<S> };

/** The arguments of a call of the route. */
export type CallOf<R extends Route> = Part<'params', R['params']> &
  Part<'query', R['query'], true> &
  Part<'body', R['body'], R['bodyOptional'] extends true ? true : false>;
