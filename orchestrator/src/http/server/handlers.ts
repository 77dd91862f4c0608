import type * as table from '@muster/protocol/http';
import type { IsStreamed, Role, Route } from '@muster/protocol/http';
import type { z } from 'zod';

/**
 * Types of the route handlers. Each route has one handler, typed by its schemas. A missing handler is a compile error.
 */

type RouteTable = {
  [Name in keyof typeof table as (typeof table)[Name] extends Route ? Name : never]: (typeof table)[Name];
};

/** Route IDs, which are the names of the exports. */
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
 * Finds live sign-in sessions. Called for every request, so it reads from memory and avoids promises where possible.
 */
export interface Sessions {
  /**
   * @param tokenHash SHA-256 of the encoded token, in lowercase hex
   * @returns null if the session does not exist or has ended
   */
  find(tokenHash: string): Session | null | Promise<Session | null>;
}

/** Properties of a request that handlers may use. */
export interface RequestFacts {
  /** Request ID. Appears in every log line for the request and in the `instance` field of errors. */
  readonly id: string;
  /** The client's address: the socket's peer or, behind trusted proxies, the address that the proxies report. */
  readonly ip: string;
  /** Untrusted `User-Agent` header. */
  readonly userAgent: string | undefined;
  /** Origin of the URL that the client used, such as `https://host:port`; null if it sent no valid host. */
  readonly origin: string | null;
  /** @param name in lowercase @returns the values of a repeated header joined by commas */
  header(name: string): string | undefined;
  readonly secure: boolean;
  /** Whether the client is on this machine, and is not a proxy for another machine. */
  readonly loopback: boolean;
  /**
   * Aborts when the client disconnects or the server stops. A waiting handler must then return the current state. Work
   * in progress continues.
   */
  readonly signal: AbortSignal;
}

export interface Call<R extends Route> {
  readonly params: Read<R['params']>;
  readonly query: Read<R['query']>;
  readonly body: Read<R['body']>;
  /** The body if it is an archive instead of JSON; always null on routes that accept no archive. */
  readonly archive: AsyncIterable<Uint8Array> | null;
  /** For handlers that write for a long time: throws if the disk has no room for further writes. */
  readonly requireDiskSpace: () => void;
  /** Null on public routes. */
  readonly session: R['access'] extends 'anyone' ? null : Session;
  /** Whether the client sent `Prefer: respond-async`; always false on routes that do not support it. */
  readonly respondAsync: boolean;
  readonly request: RequestFacts;
}

/** The properties of a {@link Call} that routes need to start operations and runs. */
export type WorkRequest = Pick<Call<Route>, 'respondAsync' | 'request'> & { readonly session: Session };

type BodyOf<S> = S extends z.ZodType ? z.output<S> : undefined;
type StatusOf<R extends Route> = keyof R['answers'] & number;

/** JSON text that encodes a value of type `T`. */
export type JsonText<T> = string & { readonly jsonOf?: T };

/** A body that is already encoded as JSON, either a string or UTF-8 bytes, for large and frequent responses. */
export class JsonBody<T> {
  readonly json: JsonText<T> | Buffer;
  constructor(json: JsonText<T> | Buffer) {
    this.json = json;
  }
}

/** A long array in chunks. Other work can run between chunks. */
export class Chunked<T> {
  readonly chunks: AsyncIterable<Piece<T>> | Iterable<Piece<T>>;
  constructor(chunks: AsyncIterable<Piece<T>> | Iterable<Piece<T>>) {
    this.chunks = chunks;
  }
}

type Piece<T> = readonly T[] | JsonBody<readonly T[]>;

/** A long body in chunks of JSON text. Other work can run between chunks. */
export class JsonPieces<T> {
  readonly pieces: AsyncIterable<string>;
  /** Never set; exists only to carry the type. */
  readonly piecesOf?: T;
  constructor(pieces: AsyncIterable<string>) {
    this.pieces = pieces;
  }
}

/** A page of a list, with a `Link` header to the next page. Used by `paged` routes. */
export class Paged<T> {
  readonly items: readonly T[] | JsonBody<readonly T[]> | Chunked<T>;
  /** Query parameters that differ in the next page's URL; null on the last page. */
  readonly next: Readonly<Record<string, string>> | null;
  constructor(items: Paged<T>['items'], next: Readonly<Record<string, string>> | null) {
    this.items = items;
    this.next = next;
  }
}

/**
 * A response that is not JSON, written at the client's pace. When the client disconnects, the source is closed with its
 * `return` or `destroy` method.
 */
export class Stream {
  readonly source: AsyncIterable<string | Uint8Array>;
  readonly type: string | undefined;
  readonly until: AbortSignal | undefined;

  /**
   * @param source the response body; if it fails before its first chunk, the client receives an error response; if it
   *   fails later, the client is disconnected
   * @param type content type; the default is the first type that the route declares for the status
   * @param until aborts to end the response before its source ends. Clients that have not read all data are then
   *   disconnected. For an endless source, pass the request's signal.
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

/** A response with a specific status, or with headers. */
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
type DefaultBody<R extends Route> =
  200 extends StatusOf<R>
    ? Given<R, 200>
    : 201 extends StatusOf<R>
      ? Given<R, 201>
      : 202 extends StatusOf<R>
        ? Given<R, 202>
        : undefined;

/**
 * A handler's result: a body for the lowest status that the route declares (`undefined` for 204), or a {@link Reply}
 * for another status or headers. Arrays may be {@link Chunked} or {@link Paged}. Routes with another media type return
 * a {@link Stream}.
 */
export type Answer<R extends Route> = DefaultBody<R> | { [S in StatusOf<R>]: Reply<S, Given<R, S>> }[StatusOf<R>];

// biome-ignore lint/suspicious/noConfusingVoidType: a handler of a route that answers 204 may simply end.
type OrVoid<T> = undefined extends T ? T | void : T;

/**
 * A route handler. A MusterError that it throws is reported to the client. Any other error is a bug, and the client
 * receives status 500.
 */
export type Handler<R extends Route> = (call: Call<R>) => OrVoid<Answer<R>> | Promise<OrVoid<Answer<R>>>;

export type Handlers = { readonly [Id in RouteId]: Handler<RouteTable[Id]> };

/** The argument type of a handler that is a separate function. */
export type CallOf<Id extends RouteId> = Call<RouteTable[Id]>;
