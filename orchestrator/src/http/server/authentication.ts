import { hash } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';
import type { Session, Sessions } from './handlers.ts';

/** Returns a sign-in session's key: the SHA-256 of the token's text, in lower-case hex. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');

/** The characters that RFC 6750 allows. The length limit bounds the cost of hashing. */
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
 * @throws MusterError unauthenticated, if the header is missing or malformed
 */
export function requireToken(authorization: string | undefined): string {
  const token = bearerToken(authorization);
  if (token !== null) return token;
  throw new MusterError(
    'unauthenticated',
    authorization === undefined
      ? 'The request contains no session token.'
      : 'The Authorization header is not `Bearer <token>`.',
  );
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
    throw new MusterError('forbidden', 'This request requires the role admin; yours is operator.');
}
