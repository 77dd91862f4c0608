import type { z } from 'zod';
import type { ErrorCode } from '../errors.ts';

/**
 * A route as data. The server registers from it, the client calls by it, OpenAPI is printed from it, and a test walks it:
 * a route that is not in the table does not exist.
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
  /** `anyone` needs no session; `operator` any live one; `admin` that role. */
  readonly access: 'anyone' | 'operator' | 'admin';
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Headers of its own, in lower case. The handler reads them. */
  readonly headers?: z.ZodObject;
  readonly body?: z.ZodType;
  /** An absent body is read as `{}`. */
  readonly bodyOptional?: boolean;
  /** Bytes; the default is 1 MiB. */
  readonly bodyLimit?: number;
  /** By status code, the usual one first; null: no body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  /**
   * By status code, where the answer is not JSON: its media type, or those it may be. The answer is then written as it
   * comes, and its schema only describes the text.
   */
  readonly media?: Readonly<Record<number, string | readonly [string, ...string[]]>>;
  /** What this route itself may answer; those every route shares are added by `errorsOf`. */
  readonly errors: readonly ErrorCode[];
  /** Its body is not taken in the open: plain HTTP from another machine is refused before the body is read. */
  readonly confidential?: boolean;
  /** Takes `Prefer: respond-async`. */
  readonly respondAsync?: boolean;
  /** Answers with a part of a list, and says by `Link: rel="next"` where there is more. */
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

/** Every code a route may answer, its own and those that come with its access and input. */
export function errorsOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors);
  if (route.access !== 'anyone') codes.add('unauthenticated');
  if (route.access === 'admin') codes.add('forbidden');
  // Also where nothing is taken: a query or body that is sent all the same is refused.
  codes.add('invalid_input').add('malformed_request');
  if (route.method !== 'GET')
    for (const code of ['malformed_json', 'body_too_large', 'unsupported_media_type'] as const) codes.add(code);
  codes.add('storage_unavailable');
  if (route.method !== 'GET') codes.add('outcome_unknown').add('storage_full');
  return [...codes.add('rate_limited').add('internal').add('draining')];
}

/** The media types of an answer of a route, the usual one first; empty when it has no body. */
export function mediaOf(route: Route, status: number): readonly string[] {
  const media = route.media?.[status];
  if (media !== undefined) return typeof media === 'string' ? [media] : media;
  return route.answers[status] ? ['application/json'] : [];
}

/** True when the answer with this status is not JSON. */
export type IsStreamed<R extends Route, S> = R extends { media: infer M } ? (S extends keyof M ? true : false) : false;

/** An answer that is not JSON, as it comes. */
export interface StreamedAnswer {
  /** The content type, without its parameters. */
  readonly type: string;
  /** Ends with the answer; whoever stops reading hangs up. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The type of the usual answer of a route: what its first status carries. */
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

/** What a caller of the route hands in. */
export type CallOf<R extends Route> = Part<'params', R['params']> &
  Part<'query', R['query'], true> &
  Part<'body', R['body'], R['bodyOptional'] extends true ? true : false>;
