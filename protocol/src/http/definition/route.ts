import type { z } from 'zod';
import type { ErrorCode } from '../../errors.ts';

/**
 * A route as data. The server registers it, the client calls it, and the OpenAPI document describes it. A test requires
 * that the table contains every served route.
 */
export interface Route {
  /** `operationId` of the OpenAPI document: camelCase, unique. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below `/api/v1`, with parameters in braces. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** `operator` requires a sign-in session; `admin` requires an admin's sign-in session. */
  readonly access: 'anyone' | 'operator' | 'admin';
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Headers that only this route reads, in lower case. */
  readonly headers?: z.ZodObject;
  readonly body?: z.ZodType;
  /** An absent body is treated as `{}`. */
  readonly bodyOptional?: boolean;
  /** Whether the body may also be a gzip-compressed archive, which the handler reads as a stream. */
  readonly archive?: true;
  /** Maximum size of the body in bytes; 1 MiB by default. */
  readonly bodyLimit?: number;
  /** Schemas by status code, the usual one first; null for a response without a body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  /**
   * Media types, by status code, for responses that are not JSON. Such a response is sent unchanged, and its schema
   * only describes the text.
   */
  readonly media?: Readonly<Record<number, string | readonly [string, ...string[]]>>;
  /** Errors specific to this route. `errorsOf` adds those that all routes have in common. */
  readonly errors: readonly ErrorCode[];
  /**
   * Whether the body is secret. If it is, requests over plain HTTP from another machine are refused before the body is
   * read.
   */
  readonly confidential?: boolean;
  /** Whether the route supports `Prefer: respond-async`. */
  readonly respondAsync?: boolean;
  /** Whether the route returns one page of a list, with the next page in `Link: rel="next"`. */
  readonly paged?: boolean;
  readonly example: {
    readonly params?: Record<string, string>;
    readonly query?: Record<string, string>;
    readonly body?: unknown;
    readonly answer?: unknown;
  };
}

/** Returns the route with its literal types. */
export const route = <const R extends Route>(definition: R): R => definition;

export const apiPrefix = '/api/v1';

/** Returns all error codes of a route: its own, and those that follow from its access and input. */
export function errorsOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors);
  if (route.access !== 'anyone') codes.add('unauthenticated');
  if (route.access === 'admin') codes.add('forbidden');
  // Routes without a query and body also return this error, for requests that contain one.
  codes.add('invalid_input').add('malformed_request');
  if (route.method !== 'GET')
    for (const code of ['malformed_json', 'body_too_large', 'unsupported_media_type'] as const) codes.add(code);
  codes.add('storage_unavailable');
  if (route.method !== 'GET') codes.add('outcome_unknown').add('storage_full');
  return [...codes.add('rate_limited').add('internal').add('draining')];
}

/** Returns the media types of a response, the usual one first; empty if it has no body. */
export function mediaOf(route: Route, status: number): readonly string[] {
  const media = route.media?.[status];
  if (media !== undefined) return typeof media === 'string' ? [media] : media;
  return route.answers[status] ? ['application/json'] : [];
}

/** Whether the response with this status is not JSON. */
export type IsStreamed<R extends Route, S> = R extends { media: infer M } ? (S extends keyof M ? true : false) : false;

/** A response that is not JSON and is passed on unchanged. */
export interface StreamedAnswer {
  /** The content type without parameters. */
  readonly type: string;
  /** The content. If the reader stops early, the connection is closed. */
  readonly body: AsyncIterable<Uint8Array>;
}

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

/** The arguments of a request to a route. */
export type CallOf<R extends Route> = Part<'params', R['params']> &
  Part<'query', R['query'], true> &
  Part<'body', R['body'], R['bodyOptional'] extends true ? true : R['archive'] extends true ? true : false>;
