import { hash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { MusterError } from '@muster/protocol';
import { pageKeyHeader, type Route } from '@muster/protocol/http';
import { consoleToken } from '../../domain/operators/sessions.ts';
import type { Session, Sessions } from './handlers.ts';

/** Returns the key of a sign-in session: the SHA-256 of the encoded token, in lowercase hex. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');

/** The characters that RFC 6750 allows in a token. The maximum length limits the cost of hashing. */
const bearer = /^Bearer +([A-Za-z0-9._~+/-]{1,512}=*) *$/i;

/** Returns the token in an `Authorization` header, or null if the header is missing or malformed. */
export function bearerToken(authorization: string | undefined): string | null {
  return authorization === undefined ? null : (bearer.exec(authorization)?.[1] ?? null);
}

/** Returns the `WWW-Authenticate` header for a 401 (RFC 6750). It differs for missing and invalid tokens. */
export const challengeHeader = (tokenSent: boolean): string =>
  tokenSent ? 'Bearer realm="muster", error="invalid_token"' : 'Bearer realm="muster"';

/**
 * Returns the token in an `Authorization` header.
 * @throws MusterError unauthenticated, if the header is malformed
 */
export function requireToken(authorization: string): string {
  const token = bearerToken(authorization);
  if (token !== null) return token;
  throw new MusterError('unauthenticated', 'The Authorization header is not `Bearer <token>`.');
}

/** A 256-bit secret in base64url. */
const secret = /^[A-Za-z0-9_-]{43}$/;

/**
 * The cookie of console sessions. Because of the prefix, browsers refuse the cookie unless it is `Secure`, has no
 * `Domain`, and was set over TLS (in most browsers also on a loopback address).
 */
export class SessionCookie {
  readonly #name: string;

  /**
   * @param server letters and digits that distinguish orchestrators on the same host, because browsers send a cookie to
   *   every port of a host
   */
  constructor(server: string) {
    this.#name = `__Host-muster-${server}`;
  }

  /** Returns the `Set-Cookie` header. @param lifeSecs seconds until the browser deletes the cookie */
  set(value: string, lifeSecs: number): string {
    return `${this.#name}=${value}; Path=/; Max-Age=${lifeSecs}; Secure; HttpOnly; SameSite=Strict`;
  }

  /** The `Set-Cookie` header that deletes the cookie. */
  get cleared(): string {
    return this.set('', 0);
  }

  /**
   * Returns the encoded token of a console session; null if the cookie or the page key is missing or malformed. The
   * cookie alone is not enough, because other servers on the host receive it too.
   */
  tokenOf(headers: IncomingHttpHeaders): string | null {
    const pageKey = headers[pageKeyHeader];
    const { cookie } = headers;
    if (cookie === undefined || typeof pageKey !== 'string' || !secret.test(pageKey)) return null;
    const pairs = cookie.split(';').map((pair) => pair.trim());
    const value = pairs.find((pair) => pair.startsWith(`${this.#name}=`))?.slice(this.#name.length + 1);
    return value !== undefined && secret.test(value) ? consoleToken(value, pageKey) : null;
  }
}

/**
 * Returns the token of a console session from a request without an `Authorization` header.
 * @throws MusterError unauthenticated
 */
export function requireCookie(request: Pick<IncomingMessage, 'method' | 'headers'>, cookie: SessionCookie): string {
  const token = cookie.tokenOf(request.headers);
  if (token === null) throw new MusterError('unauthenticated', 'The request contains no session token.');
  const { method, headers } = request;
  if (isFromConsole(method, headers['sec-fetch-site'], headers.origin)) return token;
  throw new MusterError(
    'unauthenticated',
    'The cookie of a console session is only accepted from the console’s pages.',
  );
}

/**
 * Reports whether the browser confirms that a request comes from one of the console's own pages. `origin.ts` has
 * already refused requests from other origins; this also excludes requests without information about their origin.
 * @param site value of `Sec-Fetch-Site`
 */
export function isFromConsole(method: string | undefined, site: unknown, origin: string | undefined): boolean {
  const reads = method === 'GET' || method === 'HEAD';
  return site === 'same-origin' && (reads || origin !== undefined);
}

/**
 * Finds a live session.
 * @throws MusterError unauthenticated
 */
export function findLive(tokenHash: string, sessions: Sessions): Session | Promise<Session> {
  const found = sessions.find(tokenHash);
  return found instanceof Promise ? found.then(live) : live(found);
}

function live(session: Session | null): Session {
  if (session === null) throw new MusterError('unauthenticated', 'The session has ended or never existed.');
  return session;
}

/** @throws MusterError forbidden, if the session lacks the role that the route requires */
export function authorize(access: Route['access'], session: Session | null): void {
  if (access === 'admin' && session?.role !== 'admin')
    throw new MusterError('forbidden', 'This request requires the admin role; your role is operator.');
}
