import type { Socket } from 'node:net';
import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';
import type { FastifyRequest } from 'fastify';
import { challengeHeader, findLive, hashToken, requireToken } from './authentication.ts';
import type { Session, Sessions } from './handlers.ts';
import { RefusedRequest } from './problem.ts';
import { createRates, type Rates, type TicketRate } from './rate.ts';

export interface RequestAdmissionParts {
  readonly sessions: Sessions;
  readonly rates: Rates;
  /** Called for each request with a live session. */
  readonly onSignedIn: (request: FastifyRequest) => void;
}

/** Maximum number of tokens whose hashes are kept for a connection, such as one from a proxy. */
const maxTokens = 16;

/** Admits requests: finds their sessions, and enforces the rate limits. */
export class RequestAdmission {
  readonly #parts: RequestAdmissionParts;
  #rates: ReturnType<typeof createRates>;
  /**
   * A connection's token hashes by `Authorization` header, because hashing costs more than the rest of an admission. A
   * `Map` compares hashes first, so the time of a lookup reveals nothing about a header that it contains.
   */
  readonly #tokenHashes = new WeakMap<Socket, Map<string | undefined, string>>();
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
    const found = this.findSession(route.access, request);
    return found instanceof Promise
      ? found.then((session) => this.#counted(session, request))
      : this.#counted(found as Session, request);
  }

  /**
   * Finds a request's session without counting the request.
   * @throws MusterError unauthenticated, with a challenge; if a promise is returned, it rejects with the error
   */
  findSession(access: Route['access'], request: FastifyRequest): Session | null | Promise<Session> {
    if (access === 'anyone') return null;
    return challenging(request, () => findLive(this.#tokenHash(request), this.#parts.sessions));
  }

  /** Throws or rejects if the session has ended since the request was admitted. */
  confirm(session: Session, request: FastifyRequest): void | Promise<void> {
    const found = challenging(request, () => findLive(session.token_hash, this.#parts.sessions));
    return found instanceof Promise ? found.then(() => {}) : undefined;
  }

  #tokenHash({ raw: { socket }, headers: { authorization } }: FastifyRequest): string {
    return this.#tokenHashes.get(socket)?.get(authorization) ?? hashToken(requireToken(authorization));
  }

  #counted(session: Session, request: FastifyRequest): Session {
    const { raw, headers } = request;
    let hashes = this.#tokenHashes.get(raw.socket);
    if (hashes?.has(headers.authorization) !== true) {
      if (hashes === undefined || hashes.size >= maxTokens) {
        hashes = new Map();
        this.#tokenHashes.set(raw.socket, hashes);
      }
      hashes.set(headers.authorization, session.token_hash);
    }
    this.#parts.onSignedIn(request);
    this.#rates.session(session.token_hash);
    return session;
  }
}

/** Finds a session. Adds a challenge to the error if there is none. */
function challenging<T>({ headers }: FastifyRequest, find: () => T | Promise<Session>): T | Promise<Session> {
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
