import { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';
import type { FastifyRequest } from 'fastify';
import { authenticate, challengeHeader } from './authentication.ts';
import type { Session, Sessions } from './handlers.ts';
import { RefusedRequest } from './problem.ts';
import { createRates, type Rates, type TicketRate } from './rate.ts';

export interface RequestAdmissionParts {
  readonly sessions: Sessions;
  readonly rates: Rates;
  /** Called for every request with a session. */
  readonly onSignedIn: (request: FastifyRequest) => void;
}

/** Admits requests: finds their session, and refuses those over the rate limits. */
export class RequestAdmission {
  readonly #parts: RequestAdmissionParts;
  #rates: ReturnType<typeof createRates>;
  /** Limits tickets of terminals, by the current rates. */
  readonly ticketRate: TicketRate = {
    spend: (address) => this.#rates.ticket.spend(address),
    giveBack: (address) => this.#rates.ticket.giveBack(address),
  };

  constructor(parts: RequestAdmissionParts) {
    this.#parts = parts;
    this.#rates = createRates(parts.rates);
  }

  /** Replaces the limits. Counts restart from zero, so that earlier requests do not count against the new limits. */
  setRates(rates: Rates): void {
    this.#rates = createRates(rates);
  }

  /** @throws MusterError unauthenticated, rate_limited; or rejects with it */
  admit(route: Pick<Route, 'access' | 'tag'>, request: FastifyRequest): Session | null | Promise<Session | null> {
    if (route.access === 'anyone')
      return route.tag === 'Sign-in' ? this.#rates.signIn(request.ip).then(() => null) : null;
    const found = this.findSession(route.access, request);
    return found instanceof Promise
      ? found.then((session) => this.#counted(session, request))
      : this.#counted(found as Session, request);
  }

  /** Finds the session of a request without counting the request. @throws MusterError unauthenticated, with a challenge; or rejects with it */
  findSession(access: Route['access'], request: FastifyRequest): Session | null | Promise<Session> {
    const { authorization } = request.headers;
    const refuse = (error: unknown): never => {
      if (!(error instanceof MusterError) || error.code !== 'unauthenticated') throw error;
      const challenge = challengeHeader(authorization !== undefined);
      throw new RefusedRequest(error.code, error.message, { 'www-authenticate': challenge });
    };
    try {
      const found = authenticate(access, authorization, this.#parts.sessions);
      return found instanceof Promise ? found.catch(refuse) : found;
    } catch (error) {
      return refuse(error);
    }
  }

  /** Throws or rejects when the request's session has ended since its admission. */
  confirm(request: FastifyRequest): void | Promise<void> {
    const found = this.findSession('operator', request);
    return found instanceof Promise ? found.then(() => {}) : undefined;
  }

  #counted(session: Session, request: FastifyRequest): Session {
    this.#parts.onSignedIn(request);
    this.#rates.session(session.token_hash);
    return session;
  }
}
