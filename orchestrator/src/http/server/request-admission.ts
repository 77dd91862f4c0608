import type { Socket } from 'node:net';
import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';
import type { FastifyRequest } from 'fastify';
import {
  challengeHeader,
  findLive,
  hashToken,
  requireCookie,
  requireToken,
  type SessionCookie,
} from './authentication.ts';
import type { Session, Sessions } from './handlers.ts';
import { RefusedRequest } from './problem.ts';
import { createRates, type Rates, type TicketRate } from './rate.ts';

export interface RequestAdmissionParts {
  readonly sessions: Sessions;
  readonly cookie: SessionCookie;
  readonly rates: Rates;
  /** Called for each request with a live session. */
  readonly onSignedIn: (request: FastifyRequest) => void;
}

/**
 * Maximum number of tokens whose hashes are cached for one connection. A connection from a proxy may carry many tokens.
 */
const maxTokens = 16;

/** Admits requests: finds their sessions, and enforces the rate limits. */
export class RequestAdmission {
  readonly #parts: RequestAdmissionParts;
  #rates: ReturnType<typeof createRates>;
  /**
   * Token hashes of a connection by `Authorization` header or console token, because hashing costs more than the rest
   * of the admission. A `Map` compares hashes first, so the time of a lookup reveals nothing about its keys. Only
   * tokens of live sessions are added, so that clients without a session use no memory.
   */
  readonly #tokenHashes = new WeakMap<Socket, Map<string, string>>();
  /** Limits connections with invalid terminal tickets, at the current rates. */
  readonly ticketRate: TicketRate = {
    consume: (address) => this.#rates.ticket.consume(address),
    giveBack: (address) => this.#rates.ticket.giveBack(address),
  };

  constructor(parts: RequestAdmissionParts) {
    this.#parts = parts;
    this.#rates = createRates(parts.rates);
  }

  /** Replaces the limits and resets all counts. */
  setRates(rates: Rates): void {
    this.#rates = createRates(rates);
  }

  /** @throws MusterError unauthenticated or rate_limited; if a promise is returned, it rejects with the error */
  admit(route: Pick<Route, 'access' | 'tag'>, request: FastifyRequest): Session | null | Promise<Session | null> {
    if (route.access === 'anyone')
      return route.tag === 'Sign-in' ? this.#rates.signIn(request.ip).then(() => null) : null;
    const found = this.findSession(request);
    return found instanceof Promise
      ? found.then((session) => this.#counted(session, request))
      : this.#counted(found, request);
  }

  /**
   * Finds a request's session without counting the request.
   * @throws MusterError unauthenticated, with a challenge; if a promise is returned, it rejects with the error
   */
  findSession(request: FastifyRequest): Session | Promise<Session> {
    return challenging(request, () => {
      const { authorization } = request.headers;
      const credential = authorization ?? requireCookie(request.raw, this.#parts.cookie);
      const tokenHash =
        this.#tokenHashes.get(request.raw.socket)?.get(credential) ??
        hashToken(authorization === undefined ? credential : requireToken(authorization));
      return findLive(tokenHash, this.#parts.sessions);
    });
  }

  /** Throws or rejects if the session has ended since the request was admitted. */
  confirm(session: Session, request: FastifyRequest): void | Promise<void> {
    const found = challenging(request, () => findLive(session.token_hash, this.#parts.sessions));
    return found instanceof Promise ? found.then(() => {}) : undefined;
  }

  #counted(session: Session, request: FastifyRequest): Session {
    const { raw, headers } = request;
    const credential = headers.authorization ?? requireCookie(raw, this.#parts.cookie);
    let hashes = this.#tokenHashes.get(raw.socket);
    if (hashes?.has(credential) !== true) {
      if (hashes === undefined || hashes.size >= maxTokens) {
        hashes = new Map();
        this.#tokenHashes.set(raw.socket, hashes);
      }
      hashes.set(credential, session.token_hash);
    }
    this.#parts.onSignedIn(request);
    this.#rates.session(session.token_hash);
    return session;
  }
}

/** Finds a session. Adds a challenge to the error if it has none. */
function challenging({ headers }: FastifyRequest, find: () => Session | Promise<Session>): Session | Promise<Session> {
  const refuse = (error: unknown): never => {
    if (!(error instanceof MusterError) || error.code !== 'unauthenticated') throw error;
    const challenge = challengeHeader(headers.authorization !== undefined);
    throw new RefusedRequest(error.code, error.message, { 'www-authenticate': challenge });
  };
  try {
    const found = find();
    return found instanceof Promise ? found.catch(refuse) : found;
  } catch (error) {
    return refuse(error);
  }
}
