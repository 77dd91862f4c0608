import { hash } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';
import type { Session, Sessions } from './handlers.ts';

/** Key of a sign-in session: SHA-256 of the token's text, lower-case hex. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');

/** Token characters of RFC 6750; the length limits the cost of hashing, not the token format. */
const bearer = /^Bearer +([A-Za-z0-9._~+/-]{1,512}=*) *$/i;

/** The token of an `Authorization` header, or null without a well-formed one. */
export function bearerToken(authorization: string | undefined): string | null {
  return authorization === undefined ? null : (bearer.exec(authorization)?.[1] ?? null);
}

/** The `WWW-Authenticate` header of a 401 (RFC 6750): requests a missing token, or reports an invalid one. */
export const challengeHeader = (tokenSent: boolean): string =>
  tokenSent ? 'Bearer realm="muster", error="invalid_token"' : 'Bearer realm="muster"';

/**
 * Finds the session of a request. Runs before the body is read, so that no body is read or parsed without a session.
 * @returns null on public routes; a promise only if the lookup returns one
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
  if (session === null) throw new MusterError('unauthenticated', 'The session has ended or never existed.');
  return session;
}

/** @throws MusterError forbidden, when the session lacks the role of the route */
export function authorize(access: Route['access'], session: Session | null): void {
  if (access === 'admin' && session?.role !== 'admin')
    throw new MusterError('forbidden', 'This requires the role admin; yours is operator.');
}
