import type * as table from '@muster/protocol/http';
import type { IsStreamed, Role, Route } from '@muster/protocol/http';
import type { z } from 'zod';

/**
 * Types of the route handlers: one handler for each route of the table, typed by the route's schemas. A missing handler
 * is a compile error.
 */

type RouteTable = {
  [Name in keyof typeof table as (typeof table)[Name] extends Route ? Name : never]: (typeof table)[Name];
};

/** The ids of the routes: the names of their exports. */
export type RouteId = keyof RouteTable;

type Read<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;

/** A sign-in session. `token_hash` is {@link hashToken} of the token. */
export interface Session {
  readonly operator_id: string;
  readonly username: string;
  readonly role: Role;
  readonly token_hash: string;
}

/**
 * Finds live sign-in sessions. Called for every request, so it reads from memory and avoids a promise if possible.
 */
export interface Sessions {
  /**
   * @param tokenHash SHA-256 of the token's text, lower-case hex
   * @returns null when the session does not exist or has ended
   */
  find(tokenHash: string): Session | null | Promise<Session | null>;
}

/** Facts about a request. */
export interface RequestFacts {
  /** Request id: in every log line of the request, and the `instance` of an error. */
  readonly id: string;
  /** The client's address: the socket's, unless that is a trusted proxy. */
  readonly ip: string;
  /** `https://host:port` as the client addressed this server; null if it sent no host. */
  readonly origin: string | null;
  /** @param name in lower case; repeated headers are joined by commas */
  header(name: string): string | undefined;
  readonly secure: boolean;
  /** Whether the client is on this machine, and no proxy forwards for another. */
  readonly loopback: boolean;
  /**
   * Aborted when the client disconnects or the server stops. A waiting handler then answers with the current state;
   * started work continues.
   */
  readonly signal: AbortSignal;
}

export interface Call<R extends Route> {
  readonly params: Read<R['params']>;
  readonly query: Read<R['query']>;
  readonly body: Read<R['body']>;
  /** Null on public routes. */
  readonly session: R['access'] extends 'anyone' ? null : Session;
  /** Whether the client sent `Prefer: respond-async` to avoid waiting. True only on routes that support it. */
  readonly respondAsync: boolean;
  readonly request: RequestFacts;
}

/** The part of a {@link Call} that routes use to start operations and runs. */
export type WorkRequest = Pick<Call<Route>, 'respondAsync' | 'request'> & { readonly session: Session };

type BodyOf<S> = S extends z.ZodType ? z.output<S> : undefined;
type StatusOf<R extends Route> = keyof R['answers'] & number;

/** JSON text, typed by its content. */
export type JsonText<T> = string & { readonly jsonOf?: T };

/** A body that is already JSON text, for large answers that are read often. */
export class JsonBody<T> {
  readonly text: JsonText<T>;
  constructor(text: JsonText<T>) {
    this.text = text;
  }
}

/** A long array in pieces that are written one at a time, so that other work can run in between. */
export class Chunked<T> {
  readonly chunks: AsyncIterable<Piece<T>> | Iterable<Piece<T>>;
  constructor(chunks: AsyncIterable<Piece<T>> | Iterable<Piece<T>>) {
    this.chunks = chunks;
  }
}

type Piece<T> = readonly T[] | JsonBody<readonly T[]>;

/** A long body as pieces of JSON text that are written one at a time, so that other work can run in between. */
export class JsonPieces<T> {
  readonly pieces: AsyncIterable<string>;
  /** Never set; carries the type. */
  readonly piecesOf?: T;
  constructor(pieces: AsyncIterable<string>) {
    this.pieces = pieces;
  }
}

/** A page of a list. `Link: rel="next"` leads to the next one. For routes that are `paged`. */
export class Paged<T> {
  readonly items: readonly T[] | Chunked<T>;
  /** Query parameters of the next page, replacing this request's; null at the end. */
  readonly next: Readonly<Record<string, string>> | null;
  constructor(items: readonly T[] | Chunked<T>, next: Readonly<Record<string, string>> | null) {
    this.items = items;
    this.next = next;
  }
}

/**
 * An answer that is not JSON, written at the pace of the client. The source is disposed of with `return` or `destroy`
 * when the client disconnects.
 */
export class Stream {
  readonly source: AsyncIterable<string | Uint8Array>;
  readonly type: string | undefined;
  readonly until: AbortSignal | undefined;

  /**
   * @param source a failure before its first piece is answered as an error; a later one disconnects the client
   * @param type   the content type; default: the first of the route's for the status
   * @param until  ends the answer, even if the source continues. For an endless source, pass the request's signal. A client
   *   that has not read everything when this fires is disconnected.
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

/** An answer with another status or with headers. */
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
/** The body that a handler may return for a status. */
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
 * The result of a handler: the body of the route's usual (lowest) status, `undefined` or nothing for 204; or a {@link
 * Reply} for another status or headers. Arrays may be {@link Chunked} or {@link Paged}; routes with their own media
 * type return a {@link Stream}.
 */
export type Answer<R extends Route> = UsualBody<R> | { [S in StatusOf<R>]: Reply<S, Given<R, S>> }[StatusOf<R>];

// biome-ignore lint/suspicious/noConfusingVoidType: a handler of a route that answers 204 may simply end.
type OrVoid<T> = undefined extends T ? T | void : T;

/** A handler. A MusterError that it throws is reported to the client; anything else is a bug, answered with 500. */
export type Handler<R extends Route> = (call: Call<R>) => OrVoid<Answer<R>> | Promise<OrVoid<Answer<R>>>;

export type Handlers = { readonly [Id in RouteId]: Handler<RouteTable[Id]> };

/** The call of a route, for handlers that are separate functions. */
export type CallOf<Id extends RouteId> = Call<RouteTable[Id]>;
