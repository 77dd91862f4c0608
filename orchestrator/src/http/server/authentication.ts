import { hash } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';
import type { Session, Sessions } from './handlers.ts';

/** What sessions are found by: SHA-256 of the token's text, lower-case hex. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');

/** RFC 6750's characters for a token; the length is a bound on the work of hashing it, not the shape of ours. */
const bearer = /^Bearer +([A-Za-z0-9._~+/-]{1,512}=*) *$/i;

/** The token of an `Authorization` header, or null when there is none that could be one. */
export function bearerToken(authorization: string | undefined): string | null {
  return authorization === undefined ? null : (bearer.exec(authorization)?.[1] ?? null);
}

/** The headers of a 401 (RFC 6750): an absent token is only asked for, a wrong one is named as the fault. */
export const challengeHeader = (tokenSent: boolean): string =>
  tokenSent ? 'Bearer realm="muster", error="invalid_token"' : 'Bearer realm="muster"';

/**
 * Finds the session of a request. Runs before the body is read, so that nobody without a session can make the server
 * read, parse or judge anything.
 * @returns null on routes that are open to anyone; a promise only when the sessions answer with one
 * @throws MusterError unauthenticated, without a live session
 */
export function authenticate(
  access: Route['access'],
  authorization: string | undefined,
  sessions: Sessions,
): Session | null | Promise<Session> {
  if (access === 'anyone') return null;
  const token = bearerToken(authorization);
  if (token === null) {
    throw new MusterError(
      'unauthenticated',
      authorization === undefined
        ? 'The request carries no session token.'
        : 'The Authorization header is not `Bearer <token>`.',
    );
  }
  const found = sessions.find(hashToken(token));
  return found instanceof Promise ? found.then(live) : live(found);
}

function live(session: Session | null): Session {
  if (session === null) throw new MusterError('unauthenticated', 'The session is over, or there never was one.');
  return session;
}

/** @throws MusterError forbidden, when the route needs a role that the session lacks */
export function authorize(access: Route['access'], session: Session | null): void {
  if (access === 'admin' && session?.role !== 'admin')
    throw new MusterError('forbidden', 'This needs the role admin; yours is operator.');
}
