import { MusterError } from '@muster/protocol';
import { type Route, routes } from '@muster/protocol/http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type Clock, systemClock } from '../../../lib/src/clock.ts';
import type { FairConnections } from '../admission/fair-connections.ts';
import type { TerminalConnections } from '../domain/terminals/terminal-client.ts';
import type { ConsoleFiles } from './console/console-files.ts';
import { type AnswerUnknown, registerConsolePage } from './console/console-page.ts';
import { answerError, answerErrors } from './error-answers.ts';
import { registerInstall } from './install/install.ts';
import type { InstallFiles } from './install/install-files.ts';
import { registerScraping, type Scraped } from './metrics/scraping.ts';
import { type OpenRoutesOptions, registerOpenRoutes } from './open-routes.ts';
import { requestIds } from './request-ids.ts';
import { logRequest, logUpgrade } from './request-log.ts';
import { SessionCookie } from './server/authentication.ts';
import { type AnyHandler, type EndpointContext, registerEndpoint } from './server/endpoint.ts';
import { createFallback } from './server/fallback.ts';
import type { Handlers, Session, Sessions } from './server/handlers.ts';
import { requireOwnOrigin } from './server/origin.ts';
import { defaultRates, type Rates } from './server/rate.ts';
import type { RefusedCall } from './server/refused-requests.ts';
import { RequestAdmission } from './server/request-admission.ts';
import { isApi, pathOf } from './server/request-path.ts';
import { createServer, type ServerLimits } from './server/server.ts';
import { StreamingResponses } from './server/streaming-responses.ts';
import { isTerminalUpgrade, registerTerminalSockets } from './terminal/terminal-socket.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The sign-in session; null before the session lookup and on public routes. */
    session: Session | null;
  }
  interface FastifyInstance {
    /**
     * Begins the shutdown. New requests, including requests to `/readyz`, receive a 503 response. Aborts the signals of
     * waiting handlers, and lets requests in progress finish. `close` calls `drain` and waits for these requests.
     */
    drain(): void;
    /** Closes a removed operator's open responses. */
    cutOff(operatorId: string): void;
    /**
     * Closes the open responses of a sign-in session that has ended.
     * @param renewedAs token hash of the session that replaces the ended session and takes over its responses; null if
     *   there is none
     */
    sessionEnded(tokenHash: string, renewedAs: string | null): void;
    /** Connections to the API port, for metrics and overload protection. */
    readonly connections: FairConnections;
    setRates(rates: Rates): void;
  }
}

export interface Limits extends ServerLimits {
  readonly rates: Rates;
}

const defaultLimits: Limits = {
  rates: defaultRates,
  headerBytes: 16_384,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 65_000,
  handshakeTimeout: 10_000,
  connections: 4096,
  connectionsOfNetwork: 1024,
};

export interface AppOptions extends OpenRoutesOptions {
  readonly handlers: Handlers;
  readonly sessions: Sessions;
  /** The cookie for console sessions. Its name is specific to this orchestrator. */
  readonly cookie?: SessionCookie;
  /** Handles terminal WebSockets. If omitted, there are no terminal routes. */
  readonly terminals?: TerminalConnections;
  readonly clock?: Clock;
  readonly log: Logger;
  readonly limits?: Partial<Limits>;
  /** Certificate and key in PEM. If omitted, the API uses plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. Empty by default. */
  readonly trustedProxies?: readonly string[];
  /** Addresses and networks whose connections must begin with a PROXY protocol header. */
  readonly proxyNetworks?: readonly string[];
  /** URL of a proxy in front of the API. Pages from its origin may send requests. */
  readonly publicUrl?: string | null;
  /** Whether to accept secrets over plain HTTP because a proxy that is not in `trustedProxies` terminates TLS. */
  readonly trustProxyTls?: boolean;
  /** Throws if the disk has no room for the route's writes. */
  readonly requireDiskSpace?: (route: Route) => void;
  /** Provides the metrics for `/metrics` and below. If omitted, there are no metrics routes. */
  readonly telemetry?: Scraped & { answered(route: string | null, status: number, seconds: number): void };
  /** The agent's installation files. If omitted, there are no installation routes. */
  readonly install?: InstallFiles;
  /** The console at `/`. If null, `/` explains how to build it. If omitted, `/` is not routed. */
  readonly console?: ConsoleFiles | null;
  /** Called before a request is refused for a missing role or a rate limit. */
  readonly refused?: (call: RefusedCall) => Promise<void>;
  /** Whether to validate every response against its schema. Enabled only in tests. */
  readonly validateAnswers?: boolean;
}

/** State and services that several functions in this file share. */
interface Shared {
  readonly app: FastifyInstance;
  readonly options: AppOptions;
  readonly clock: Clock;
  readonly limits: Limits;
  /** Headers that every response contains. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: FairConnections;
  readonly admission: RequestAdmission;
  readonly drain: AbortController;
  readonly responses: StreamingResponses;
  /** Throws if a page from another origin sent the request. */
  refuseForeign(request: FastifyRequest): void;
}

/**
 * Creates the orchestrator's HTTP server with all routes and hooks. The server is not listening yet, so the caller can
 * register more routes.
 * @throws Error if a route has no handler
 */
export function createApp(options: AppOptions): FastifyInstance {
  const { log, clock = systemClock } = options;
  const limits: Limits = { ...defaultLimits, ...options.limits };
  const headers: Record<string, string> = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
  if (options.tls) headers['strict-transport-security'] = 'max-age=31536000';
  const refuseForeign = (request: FastifyRequest): void => requireOwnOrigin(request, options.publicUrl ?? null);

  const { app, connections } = createServer({
    clock,
    log,
    tls: options.tls,
    trustedProxies: options.trustedProxies ?? [],
    proxyNetworks: options.proxyNetworks ?? [],
    limits,
    upgrades: (request) => options.terminals !== undefined && isTerminalUpgrade(request),
    requestId: requestIds(),
    badAddress: (error, request, reply) => {
      reply.headers(headers).header('x-request-id', request.id);
      // As for all requests, checks for a foreign origin before it checks for a missing session.
      const judged = Promise.resolve().then(() => {
        refuseForeign(request);
        return isApi(request) ? admission.findSession(request) : null;
      });
      judged.then(
        () => answerError(log, error, request, reply),
        (refused) => answerError(log, refused, request, reply),
      );
    },
  });
  const onSignedIn = (request: FastifyRequest) => connections.signedIn(request.raw.socket);
  const { sessions, cookie = new SessionCookie('session') } = options;
  const admission = new RequestAdmission({ sessions, cookie, rates: limits.rates, onSignedIn });
  const drain = new AbortController();
  const responses = new StreamingResponses();
  const shared = {
    app,
    options,
    clock,
    limits,
    headers,
    connections,
    admission,
    drain,
    responses,
    refuseForeign,
  };
  answerErrors(app, log, options.refused);
  decorate(shared);
  // Assigned below, because the hooks must be registered before the routes.
  let answerUnknown: AnswerUnknown = () => false;
  let endTerminals = () => Promise.resolve();
  app.addHook('preClose', async () => {
    drain.abort();
    connections.endHandshakes();
    // `close` waits for all sockets, but does not close upgraded sockets itself.
    await endTerminals();
  });
  hookRequests(shared, (request, reply) => answerUnknown(request, reply));
  const endpoints = registerEndpoints(shared);
  if (options.terminals !== undefined) endTerminals = registerTerminals(shared, options.terminals);
  registerOpenRoutes(app, options);
  if (options.console !== undefined) answerUnknown = registerConsolePage(app, options.console);
  registerInstall(app, options.install ?? new Map(), clock);
  if (options.telemetry !== undefined)
    registerScraping(app, options.telemetry, {
      ...endpoints,
      admit: (request) => admission.admit({ access: 'operator', tag: '' }, request),
      admitted: onSignedIn,
    });
  return app;
}

/** Implements the members that are declared above for `FastifyInstance`. */
function decorate({ app, connections, admission, drain, responses }: Shared): void {
  app.decorateRequest('session', null);
  app.decorate('drain', () => drain.abort());
  app.decorate('setRates', (rates: Rates) => admission.setRates(rates));
  app.decorate('connections', connections);
  app.decorate('cutOff', (operatorId: string) => responses.cutOff(operatorId));
  app.decorate('sessionEnded', (tokenHash: string, renewedAs: string | null) =>
    responses.sessionEnded(tokenHash, renewedAs),
  );
}

/**
 * Registers hooks that refuse requests before their handlers run, and log requests after the response has been sent.
 */
function hookRequests(
  { app, options, headers, admission, drain, refuseForeign }: Shared,
  answerUnknown: AnswerUnknown,
): void {
  const answered = (request: FastifyRequest, reply: FastifyReply, ms: number): void => {
    logRequest(options.log, request, reply, ms);
    const { routeId = null } = request.routeOptions.config as { routeId?: string };
    options.telemetry?.answered(routeId, reply.statusCode, ms / 1000);
    // Closes idle connections. Otherwise, the shutdown would wait until they time out.
    if (drain.signal.aborted) setImmediate(() => app.server.closeIdleConnections());
  };
  const fallback = createFallback(routes, (path) => app.hasRoute({ method: 'GET', url: path }));
  app.addHook('onRequest', (request, reply, done) => {
    const startedAt = performance.now();
    // Cheaper than an `onResponse` hook.
    reply.raw.on('finish', () => answered(request, reply, performance.now() - startedAt));
    reply.headers(headers).header('x-request-id', request.id);
    try {
      refuseForeign(request);
    } catch (error) {
      return done(error as Error);
    }
    if (drain.signal.aborted && pathOf(request) !== '/healthz') done(new MusterError('draining'));
    else if (!request.is404) done();
    // Runs before the body is read. A client without a session does not learn which paths exist.
    else if (!isApi(request)) {
      if (!answerUnknown(request, reply)) done(fallback(pathOf(request)));
    } else
      Promise.resolve()
        .then(() => admission.findSession(request))
        .then(() => done(fallback(pathOf(request))), done);
  });
}

/**
 * Registers the API routes.
 * @returns the context that all endpoints share
 * @throws Error if a route has no handler
 */
function registerEndpoints({ app, options, admission, drain, responses }: Shared): EndpointContext {
  const context: EndpointContext = {
    validateAnswers: options.validateAnswers ?? false,
    ...(options.requireDiskSpace ? { requireDiskSpace: options.requireDiskSpace } : {}),
    trustProxyTls: options.trustProxyTls ?? false,
    draining: drain.signal,
    admit: (route, request) => admission.admit(route, request),
    confirm: (session, request) => admission.confirm(session, request),
    responses,
    broken: (request, error) =>
      options.log.error({ request_id: request.id, path: pathOf(request), err: error }, 'response aborted'),
  };
  const handlers = options.handlers as Readonly<Record<string, AnyHandler | undefined>>;
  for (const route of routes) {
    const handler = handlers[route.id];
    if (typeof handler !== 'function') throw new Error(`no handler for the route ${route.id}`);
    registerEndpoint(app, route, handler, context);
  }
  return context;
}

/** Registers the terminal WebSockets. @returns a function that closes open WebSockets */
function registerTerminals(
  { app, options, clock, limits, connections, admission }: Shared,
  terminals: TerminalConnections,
): () => Promise<void> {
  return registerTerminalSockets(app, {
    connections: terminals,
    clock,
    log: options.log,
    rate: admission.ticketRate,
    maxOpen: Math.floor(limits.connections / 2),
    opened: (request, mode, ms) => {
      connections.signedIn(request.raw.socket);
      logUpgrade(options.log, request, mode, ms);
    },
  });
}
