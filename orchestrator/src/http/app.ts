import { randomBytes } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import { apiPrefix, type Route, routes } from '@muster/protocol/http';
import { moduleJsonSchema, moduleSchemaId } from '@muster/protocol/module';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type Clock, systemClock } from '../../../lib/src/clock.ts';
import type { FairConnections } from '../admission/fair-connections.ts';
import type { TerminalConnections } from '../domain/terminals/terminal-client.ts';
import type { ConsoleFiles } from './console/console-files.ts';
import { type AnswerUnknown, registerConsolePage } from './console/console-page.ts';
import { registerInstall } from './install/install.ts';
import type { InstallFiles } from './install/install-files.ts';
import { registerScraping, type Scraped } from './metrics/scraping.ts';
import { registerDocsPage } from './openapi/docs-page.ts';
import { printOpenApi } from './openapi/openapi.ts';
import { authenticate, challengeHeader } from './server/authentication.ts';
import { type AnyHandler, registerEndpoint } from './server/endpoint.ts';
import { createFallback } from './server/fallback.ts';
import type { Handlers, Session, Sessions } from './server/handlers.ts';
import { requireOwnOrigin } from './server/origin.ts';
import { headersOf, musterErrorOf, problemOf, RefusedRequest } from './server/problem.ts';
import { createRates, defaultRates, type Rates } from './server/rate.ts';
import type { RefusedCall } from './server/refused-requests.ts';
import { createServer } from './server/server.ts';
import { StreamingResponses } from './server/streaming-responses.ts';
import { isTerminalUpgrade, registerTerminalSockets } from './terminal/terminal-socket.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until the session is found, and on routes open to anyone. */
    session: Session | null;
  }
  interface FastifyInstance {
    /**
     * Begins the shutdown: new requests, `/readyz` included, are answered with 503, and waiting handlers are notified
     * by their signal. Requests in progress are still answered. `close` drains as well, and then waits for them.
     */
    drain(): void;
    /** Ends open responses to an operator who was removed. */
    cutOff(operatorId: string): void;
    /** Ends open responses of a sign-in session that ended; `renewedAs`: they continue under this session. */
    sessionEnded(tokenHash: string, renewedAs: string | null): void;
    /** Connections to the API port. */
    readonly connections: FairConnections;
    /** Replaces the rate limits. */
    setRates(rates: Rates): void;
  }
}

export interface Limits {
  readonly rates: Rates;
  /** Maximum bytes of the request line and headers. */
  readonly headerBytes: number;
  /** Milliseconds until the headers must be complete. */
  readonly headersTimeout: number;
  /** Milliseconds until the whole request must be complete. */
  readonly requestTimeout: number;
  /** Milliseconds before an idle connection is closed. */
  readonly keepAliveTimeout: number;
  /** Maximum milliseconds of a TLS handshake, and of the wait for it. */
  readonly handshakeTimeout: number;
  /** Maximum connections. When full, connections without a sign-in are dropped, silent ones first. */
  readonly connections: number;
  /** Maximum connections without a sign-in of one IPv4 address or IPv6 /64; trusted proxies have no such limit. */
  readonly connectionsOfNetwork: number;
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

export interface AppOptions {
  readonly handlers: Handlers;
  readonly sessions: Sessions;
  /** Accepts WebSockets of terminals; without it there are none. */
  readonly terminals?: TerminalConnections;
  readonly clock?: Clock;
  readonly log: Logger;
  readonly limits?: Partial<Limits>;
  /** PEM. Without it the API is plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted; default none. */
  readonly trustedProxies?: readonly string[];
  /** URL of a proxy in front: its pages count as the orchestrator's own. */
  readonly publicUrl?: string | null;
  /** An undeclared proxy terminates TLS for the clients: secrets are accepted over plain HTTP. */
  readonly trustProxyTls?: boolean;
  /** Readiness for `/readyz`. */
  readonly ready?: () => boolean | Promise<boolean>;
  /** Throws when the disk has no room for the route's writes. */
  readonly requireRoom?: (route: Route) => void;
  /** Metrics at `/metrics` and below; without it these addresses do not exist. */
  readonly telemetry?: Scraped & { answered(route: string | null, status: number, seconds: number): void };
  /** Installation files of the agent; without it there are none. */
  readonly install?: InstallFiles;
  /** The console at `/`; null: not built, which `/` explains; without it the address does not exist. */
  readonly console?: ConsoleFiles | null;
  /** Called before a refusal for lack of a role or for too many requests is answered. */
  readonly refused?: (call: RefusedCall) => Promise<void>;
  /** JSON Schemas of the configuration files, by address. */
  readonly configSchemas?: Readonly<Record<string, () => object>>;
  /** Product version, for the OpenAPI document. */
  readonly version: string;
  /** Validates every answer against its schema; for tests. */
  readonly validateAnswers?: boolean;
}

/**
 * The HTTP server of the orchestrator with all routes and their common behavior. It does not listen yet; more routes
 * can be registered before it does.
 * @throws Error when a route has no handler
 */
export function createApp(options: AppOptions): FastifyInstance {
  const limits: Limits = { ...defaultLimits, ...options.limits };
  const { log } = options;
  let rates = createRates(limits.rates);
  const drain = new AbortController();

  const clock = options.clock ?? systemClock;
  const { app, connections } = createServer({
    clock,
    log,
    tls: options.tls,
    trustedProxies: options.trustedProxies ?? [],
    limits,
    upgrades: (request) => options.terminals !== undefined && isTerminalUpgrade(request),
    requestId: requestIds(),
    badAddress: (error, request, reply) => {
      reply.headers(headers).header('x-request-id', request.id);
      // Same order of refusals as for requests: foreign origins first, then missing sessions.
      const judged = Promise.resolve().then(() => {
        requireOwn(request);
        return isApi(request) ? findSession('operator', request) : null;
      });
      judged.then(
        () => answerError(error, request, reply),
        (refused) => answerError(refused, request, reply),
      );
    },
  });

  const fallback = createFallback(routes, (path) => app.hasRoute({ method: 'GET', url: path }));

  let answerUnknown: AnswerUnknown = () => false;

  const headers: Record<string, string> = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
  if (options.tls) headers['strict-transport-security'] = 'max-age=31536000';

  function answerError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const error = musterErrorOf(thrown);
    const about = { request_id: request.id, method: request.method, path: pathOf(request) };
    if (error.code === 'internal') log.error({ ...about, err: thrown }, 'request failed');
    else if (error.kind.status >= 500)
      log.warn({ ...about, code: error.code, detail: error.message }, 'request failed');
    reply.code(error.kind.status).headers(headersOf(error)).header('content-type', 'application/problem+json');
    return reply.send(JSON.stringify(problemOf(error, request.id)));
  }
  app.setErrorHandler((thrown, request, reply) => {
    const { routeId } = request.routeOptions.config as { routeId?: string };
    const route = routeId === undefined ? undefined : routes.find(({ id }) => id === routeId);
    const error = musterErrorOf(thrown);
    if (route === undefined || ![403, 429].includes(error.kind.status) || options.refused === undefined)
      return answerError(thrown, request, reply);
    // Refusals are recorded before they are answered. If recording fails, the request is still refused.
    return options
      .refused({ error, route, session: request.session, ip: request.ip })
      .catch((failed: unknown) =>
        log.warn({ request_id: request.id, err: failed }, 'failed to record refusal in the audit log'),
      )
      .then(() => answerError(thrown, request, reply));
  });

  function findSession(access: Route['access'], request: FastifyRequest): Session | null | Promise<Session> {
    const { authorization } = request.headers;
    const refuse = (error: unknown): never => {
      if (!(error instanceof MusterError) || error.code !== 'unauthenticated') throw error;
      const challenge = challengeHeader(authorization !== undefined);
      throw new RefusedRequest(error.code, error.message, { 'www-authenticate': challenge });
    };
    try {
      const found = authenticate(access, authorization, options.sessions);
      return found instanceof Promise ? found.catch(refuse) : found;
    } catch (error) {
      return refuse(error);
    }
  }
  const requireOwn = (request: FastifyRequest): void =>
    requireOwnOrigin(request, options.publicUrl ?? null, !isApi(request));
  const counted = (session: Session, request: FastifyRequest): Session => {
    connections.signedIn(request.raw.socket);
    rates.session(session.token_hash);
    return session;
  };
  function admit(
    route: Pick<Route, 'access' | 'tag'>,
    request: FastifyRequest,
  ): Session | null | Promise<Session | null> {
    if (route.access === 'anyone') return route.tag === 'Sign-in' ? rates.signIn(request.ip).then(() => null) : null;
    const found = findSession(route.access, request);
    return found instanceof Promise
      ? found.then((session) => counted(session, request))
      : counted(found as Session, request);
  }

  app.decorateRequest('session', null);
  app.decorate('drain', () => drain.abort());
  // New limits start from zero, so that no request is refused for earlier ones.
  app.decorate('setRates', (wanted: Rates) => {
    rates = createRates(wanted);
  });
  const responses = new StreamingResponses();
  app.decorate('connections', connections);
  app.decorate('cutOff', (operatorId: string) => responses.cutOff(operatorId));
  app.decorate('sessionEnded', (tokenHash: string, renewedAs: string | null) =>
    responses.sessionEnded(tokenHash, renewedAs),
  );
  let endTerminals = () => Promise.resolve();
  app.addHook('preClose', async () => {
    drain.abort();
    connections.endHandshakes();
    // Closing the server waits for its sockets, and does not end upgraded ones.
    await endTerminals();
  });
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(headers).header('x-request-id', request.id);
    try {
      requireOwn(request);
    } catch (error) {
      return done(error as Error);
    }
    if (drain.signal.aborted && pathOf(request) !== '/healthz') done(new MusterError('draining'));
    else if (!request.is404) done();
    // Without a session a client does not learn which addresses exist, and its body is not read.
    else if (!isApi(request)) {
      if (!answerUnknown(request, reply)) done(fallback(pathOf(request)));
    } else
      Promise.resolve()
        .then(() => findSession('operator', request))
        .then(() => done(fallback(pathOf(request))), done);
  });
  app.addHook('onResponse', (request, reply, done) => {
    logRequest(log, request, reply);
    const { routeId = null } = request.routeOptions.config as { routeId?: string };
    options.telemetry?.answered(routeId, reply.statusCode, reply.elapsedTime / 1000);
    // A response may have left its connection open; closing would wait for its timeout.
    if (drain.signal.aborted) setImmediate(() => app.server.closeIdleConnections());
    done();
  });

  const context = {
    validateAnswers: options.validateAnswers ?? false,
    ...(options.requireRoom ? { requireRoom: options.requireRoom } : {}),
    trustProxyTls: options.trustProxyTls ?? false,
    draining: drain.signal,
    admit,
    confirm: (request: FastifyRequest) => {
      const found = findSession('operator', request);
      return found instanceof Promise ? found.then(() => {}) : undefined;
    },
    responses,
    broken: (request: FastifyRequest, error: unknown) =>
      log.error({ request_id: request.id, path: pathOf(request), err: error }, 'response aborted'),
  };
  const handlers = options.handlers as Readonly<Record<string, AnyHandler | undefined>>;
  for (const route of routes) {
    const handler = handlers[route.id];
    if (typeof handler !== 'function') throw new Error(`no handler for the route ${route.id}`);
    registerEndpoint(app, route, handler, context);
  }
  if (options.terminals !== undefined)
    endTerminals = registerTerminalSockets(app, {
      connections: options.terminals,
      clock,
      log,
      rate: { spend: (address) => rates.ticket.spend(address), giveBack: (address) => rates.ticket.giveBack(address) },
      most: Math.floor(limits.connections / 2),
      opened: (request, mode, ms) => {
        connections.signedIn(request.raw.socket);
        logUpgrade(log, request, mode, ms);
      },
    });
  registerOpen(app, options);
  if (options.console !== undefined) answerUnknown = registerConsolePage(app, options.console);
  registerInstall(app, options.install ?? new Map(), clock);
  if (options.telemetry !== undefined)
    registerScraping(app, options.telemetry, {
      ...context,
      admit: (request) => admit({ access: 'operator', tag: '' }, request),
      admitted: (request) => connections.signedIn(request.raw.socket),
    });
  return app;
}

/** Routes open to anyone outside the API: health and the API description. */
function registerOpen(app: FastifyInstance, options: AppOptions): void {
  const json = 'application/json';
  let openApi: string | null = null;
  app.get('/openapi.json', (_request, reply) => {
    openApi ??= JSON.stringify(printOpenApi(options.version));
    return reply.header('content-type', json).send(openApi);
  });
  let moduleSchema: string | null = null;
  app.get(moduleSchemaId, (_request, reply) => {
    moduleSchema ??= JSON.stringify(moduleJsonSchema());
    return reply.header('content-type', 'application/schema+json').send(moduleSchema);
  });
  for (const [path, schemaOf] of Object.entries(options.configSchemas ?? {})) {
    let schema: string | null = null;
    app.get(path, (_request, reply) => {
      schema ??= JSON.stringify(schemaOf());
      return reply.header('content-type', 'application/schema+json').send(schema);
    });
  }
  registerDocsPage(app);
  app.get('/healthz', (_request, reply) => reply.header('content-type', json).send('{"status":"ok"}'));
  app.get('/readyz', async (_request, reply) => {
    const ready = options.ready === undefined || (await options.ready());
    reply.code(ready ? 200 : 503).header('content-type', json);
    return reply.send(ready ? '{"status":"ready"}' : '{"status":"not_ready"}');
  });
}

/** Allowed request ids of clients and proxies; safe to log. */
const givenId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The request's own id, or a generated one: unique while logs are kept, and cheaper than random bytes. */
function requestIds(): (given?: string | string[] | undefined) => string {
  const run = randomBytes(6).toString('hex');
  let count = 0;
  return (given) => (typeof given === 'string' && givenId.test(given) ? given : `${run}-${(++count).toString(36)}`);
}

/** The path without the query, which may contain a ticket. */
const pathOf = ({ url }: FastifyRequest): string => {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
};

/** Handles all spellings of an address: the router also accepts full URLs and escaped letters. */
const isApi = (request: FastifyRequest): boolean => {
  const path = pathOf(request);
  if (path === apiPrefix || path.startsWith(`${apiPrefix}/`)) return true;
  return `${unescaped(path.replace(/^https?:\/\/[^/]*/i, ''))}/`.startsWith(`${apiPrefix}/`);
};

/** Decodes ASCII escapes; others stay as they are. */
const unescaped = (path: string): string =>
  path.replaceAll(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));

/** Logs one line per request. Successful reads are logged at debug level, since there are many. */
function logRequest(log: Logger, request: FastifyRequest, reply: FastifyReply): void {
  const quiet = reply.statusCode < 400 && (request.method === 'GET' || request.method === 'HEAD');
  const level = quiet ? 'debug' : 'info';
  if (!log.isLevelEnabled(level)) return;
  log[level](
    {
      request_id: request.id,
      method: request.method,
      path: pathOf(request),
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      ip: request.ip,
      ...(request.session ? { operator_id: request.session.operator_id } : {}),
    },
    'request',
  );
}

/** Logs an upgrade with the same fields as a request. */
function logUpgrade(log: Logger, request: FastifyRequest, mode: string, ms: number): void {
  log.info(
    {
      request_id: request.id,
      method: request.method,
      path: pathOf(request),
      status: 101,
      duration_ms: Math.round(ms * 10) / 10,
      ip: request.ip,
      mode,
    },
    'request',
  );
}
