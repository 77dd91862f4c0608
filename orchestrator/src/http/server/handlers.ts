import type * as table from '@muster/protocol/http';
import type { IsStreamed, Role, Route } from '@muster/protocol/http';
import type { z } from 'zod';

/**
 * What the routes' code is written against: one handler for each route of the table, typed by the schemas of that route.
 * A route without a handler does not compile.
 */

type RouteTable = {
  [Name in keyof typeof table as (typeof table)[Name] extends Route ? Name : never]: (typeof table)[Name];
};

/** The ids of the table: what a route is exported as, which is also its `id`. */
export type RouteId = keyof RouteTable;

type Read<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;

/** Who calls. `token_hash` is what {@link hashToken} makes of the token that was sent. */
export interface Session {
  readonly operator_id: string;
  readonly username: string;
  readonly role: Role;
  readonly token_hash: string;
}

/** Finds live sessions. Asked once for every request, so it answers from memory and without a promise where it can. */
export interface Sessions {
  /**
   * @param tokenHash SHA-256 of the token's text, lower-case hex
   * @returns null when there is no such session, or it is over
   */
  find(tokenHash: string): Session | null | Promise<Session | null>;
}

/** How a request came in. */
export interface RequestFacts {
  /** In every log line about the request, and the `instance` of an error answer. */
  readonly id: string;
  /** Of the client: the socket's, unless that is a trusted proxy. */
  readonly ip: string;
  /** `https://host:port` as the client addressed this server; null when it did not say. */
  readonly origin: string | null;
  /** @param name in lower case; what came more than once is joined by commas */
  header(name: string): string | undefined;
  /** True when the client's connection is encrypted. */
  readonly secure: boolean;
  /** True when the socket's other end is this machine itself, and no proxy speaks for another. */
  readonly loopback: boolean;
  /**
   * Aborted when the client hangs up or the server is about to stop. A handler that waits answers then with what there
   * is so far; work that was begun goes on.
   */
  readonly signal: AbortSignal;
}

export interface Call<R extends Route> {
  readonly params: Read<R['params']>;
  readonly query: Read<R['query']>;
  readonly body: Read<R['body']>;
  /** Null on routes that are open to anyone. */
  readonly session: R['access'] extends 'anyone' ? null : Session;
  /** The client asked, by `Prefer: respond-async`, not to be kept waiting. Only ever true where the route takes that. */
  readonly respondAsync: boolean;
  readonly request: RequestFacts;
}

type BodyOf<S> = S extends z.ZodType ? z.output<S> : undefined;
type StatusOf<R extends Route> = keyof R['answers'] & number;

/** JSON text, remembering what it holds. */
export type JsonText<T> = string & { readonly jsonOf?: T };

/** A body that is JSON text already: written as it is. For what is read often and large. */
export class JsonBody<T> {
  readonly text: JsonText<T>;
  constructor(text: JsonText<T>) {
    this.text = text;
  }
}

/** A long array, in pieces that are written one at a time while other work goes on between them. */
export class Chunked<T> {
  readonly chunks: AsyncIterable<Piece<T>> | Iterable<Piece<T>>;
  constructor(chunks: AsyncIterable<Piece<T>> | Iterable<Piece<T>>) {
    this.chunks = chunks;
  }
}

type Piece<T> = readonly T[] | JsonBody<readonly T[]>;

/** A long body as pieces of its JSON text, which are written one at a time while other work goes on between them. */
export class JsonPieces<T> {
  readonly pieces: AsyncIterable<string>;
  /** Never set; carries the type. */
  readonly piecesOf?: T;
  constructor(pieces: AsyncIterable<string>) {
    this.pieces = pieces;
  }
}

/** A part of a list; `Link: rel="next"` says where there is more. For routes that are `paged`. */
export class Paged<T> {
  readonly items: readonly T[] | Chunked<T>;
  /** The query parameters that give the next part when they take the place of this request's; null at the end. */
  readonly next: Readonly<Record<string, string>> | null;
  constructor(items: readonly T[] | Chunked<T>, next: Readonly<Record<string, string>> | null) {
    this.items = items;
    this.next = next;
  }
}

/**
 * An answer that is not JSON, written as it comes and no faster than the client reads. Its source is let go of, by
 * `return` or `destroy`, when the client hangs up.
 */
export class Stream {
  readonly source: AsyncIterable<string | Uint8Array>;
  readonly type: string | undefined;
  readonly until: AbortSignal | undefined;

  /**
   * @param source what fails before its first piece is answered as an error; what fails later cuts the client off
   * @param type   the content type; by default the first that the route has for the status
   * @param until  ends the answer, whatever the source does: for one without an end of its own, hand in the request's
   *               signal. A client that has not read what was written until then is cut off.
   */
  constructor(
    source: AsyncIterable<string | Uint8Array>,
    { type, until }: { type?: string; until?: AbortSignal } = {},
  ) {
    this.source = source;
    this.type = type;
    this.until = until;
  }
}

/** An answer with a status of its own, or with headers. */
export class Reply<S extends number, B> {
  readonly status: S;
  readonly body: B;
  readonly headers: Readonly<Record<string, string>>;
  constructor(status: S, body: B, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

type Written<B> = B extends readonly (infer T)[]
  ? B | Chunked<T> | Paged<T>
  : B | (B extends object ? JsonBody<B> | JsonPieces<B> : never);
/** What a handler may give as the body of one status. */
type Given<R extends Route, S extends StatusOf<R>> =
  IsStreamed<R, S> extends true ? Stream : Written<BodyOf<R['answers'][S]>>;
type UsualBody<R extends Route> =
  200 extends StatusOf<R>
    ? Given<R, 200>
    : 201 extends StatusOf<R>
      ? Given<R, 201>
      : 202 extends StatusOf<R>
        ? Given<R, 202>
        : undefined;

/**
 * What a handler gives back: the body of the route's usual (lowest) status, `undefined` or nothing for 204; or a
 * {@link Reply} for another status or headers; either with {@link Chunked} or {@link Paged} in place of an array, and with
 * {@link Stream} where the route has a media type of its own.
 */
export type Answer<R extends Route> = UsualBody<R> | { [S in StatusOf<R>]: Reply<S, Given<R, S>> }[StatusOf<R>];

// biome-ignore lint/suspicious/noConfusingVoidType: a handler of a route that answers 204 may simply end.
type OrVoid<T> = undefined extends T ? T | void : T;

/** Throws MusterError for what the client should be told; anything else it throws is a bug and answered with 500. */
export type Handler<R extends Route> = (call: Call<R>) => OrVoid<Answer<R>> | Promise<OrVoid<Answer<R>>>;

export type Handlers = { readonly [Id in RouteId]: Handler<RouteTable[Id]> };

/** The call of one route, for handlers that are written as functions of their own. */
export type CallOf<Id extends RouteId> = Call<RouteTable[Id]>;
