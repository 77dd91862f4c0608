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
import { LastingAnswers } from './server/streaming-responses.ts';
import { isTerminalUpgrade, registerTerminalSockets } from './terminal/terminal-socket.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until the session is found, and on what is open to anyone. */
    session: Session | null;
  }
  interface FastifyInstance {
    /**
     * Begins to stop: new requests are answered 503, `/readyz` too, waiting handlers are told by their signal. What is
     * being answered is still answered. `close` does it as well, and then waits for that.
     */
    drain(): void;
    /** Ends what an operator who was removed is still being answered. */
    cutOff(operatorId: string): void;
    /** The same for a session that was ended; `renewedAs`: what it is answered goes on under that one. */
    sessionEnded(tokenHash: string, renewedAs: string | null): void;
    /** Who is connected to the API's port. */
    readonly connections: FairConnections;
    /** Other bounds on how many requests there may be. */
    setRates(rates: Rates): void;
  }
}

export interface Limits {
  readonly rates: Rates;
  /** Bytes of the request line and headers together. */
  readonly headerBytes: number;
  /** Milliseconds until the headers must be complete. */
  readonly headersTimeout: number;
  /** Milliseconds until the whole request must be complete. */
  readonly requestTimeout: number;
  /** Milliseconds that an idle connection is kept. */
  readonly keepAliveTimeout: number;
  /** Milliseconds that a TLS handshake may take, and that a connection may wait for it to begin. */
  readonly handshakeTimeout: number;
  /** Connections at one time. Beyond it those give way whose clients have not signed in, silent ones first. */
  readonly connections: number;
  /** Of them, those of one address, or IPv6 /64, whose clients have not signed in; trusted proxies have no such limit. */
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
  /** Where the WebSockets on terminals come in; without it there are none. */
  readonly terminals?: TerminalConnections;
  readonly clock?: Clock;
  readonly log: Logger;
  readonly limits?: Partial<Limits>;
  /** PEM. Without it the API is plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed; default none. */
  readonly trustedProxies?: readonly string[];
  /** Of a proxy in front: pages under it are our own. */
  readonly publicUrl?: string | null;
  /** A proxy that is not named there speaks TLS to the clients: secrets are taken over plain HTTP. */
  readonly trustProxyTls?: boolean;
  /** Whether requests should be sent here now, for `/readyz`. */
  readonly ready?: () => boolean | Promise<boolean>;
  /** Throws when there is no room for what a route would write. */
  readonly requireRoom?: (route: Route) => void;
  /** What Prometheus is told at `/metrics` and below it; without it there is nothing there. */
  readonly telemetry?: Scraped & { answered(route: string | null, status: number, seconds: number): void };
  /** What machines install the agent from; without it there is nothing. */
  readonly install?: InstallFiles;
  /** The console, at `/`; null: it is not built, which is what `/` says; without it there is nothing there. */
  readonly console?: ConsoleFiles | null;
  /** Told of refusals for want of a right, or for too many requests, before they are answered. */
  readonly refused?: (call: RefusedCall) => Promise<void>;
  /** JSON Schemas of the configuration files, by where they are found. */
  readonly configSchemas?: Readonly<Record<string, () => object>>;
  /** Of the product, for the OpenAPI document. */
  readonly version: string;
  /** Holds every answer to its schema; for tests. */
  readonly validateAnswers?: boolean;
}

/**
 * The HTTP side of the orchestrator: every route of the table, and what holds for all of them. It does not listen yet,
 * and more may be registered on it until it does.
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
      // The order of refusal holds here too: pages of others get nothing, then whoever has no session is told that.
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
    // Recorded before it is answered, as all that is recorded; a refusal stays one when that cannot be done.
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
  // What was counted so far is forgotten: nobody is refused for what was allowed.
  app.decorate('setRates', (wanted: Rates) => {
    rates = createRates(wanted);
  });
  const lasting = new LastingAnswers();
  app.decorate('connections', connections);
  app.decorate('cutOff', (operatorId: string) => lasting.cutOff(operatorId));
  app.decorate('sessionEnded', (tokenHash: string, renewedAs: string | null) =>
    lasting.sessionEnded(tokenHash, renewedAs),
  );
  let endTerminals = () => Promise.resolve();
  app.addHook('preClose', async () => {
    drain.abort();
    connections.endHandshakes();
    // The server waits for its sockets, and those that have become something else are nothing that it would end.
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
    // Nobody without a session learns even which addresses there are, and no body is read for one that there is not.
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
    // An answer that was under way may have left its connection open; closing would wait for it to time out.
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
    lasting,
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

/** What is open to anyone and outside the API: how the process is, and the API's description. */
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

/** What a client or a proxy may call its request: nothing that could be anything else in a log. */
const givenId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * The id that came with a request, or one of our own: unique for as long as logs are kept, and cheaper than randomness
 * for each.
 */
function requestIds(): (given?: string | string[] | undefined) => string {
  const run = randomBytes(6).toString('hex');
  let count = 0;
  return (given) => (typeof given === 'string' && givenId.test(given) ? given : `${run}-${(++count).toString(36)}`);
}

/** Without the query, which may hold a ticket. */
const pathOf = ({ url }: FastifyRequest): string => {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
};

/** However its address is written: the router reads a whole URL, and letters that are escaped, as it reads the plain path. */
const isApi = (request: FastifyRequest): boolean => {
  const path = pathOf(request);
  if (path === apiPrefix || path.startsWith(`${apiPrefix}/`)) return true;
  return `${unescaped(path.replace(/^https?:\/\/[^/]*/i, ''))}/`.startsWith(`${apiPrefix}/`);
};

/** What cannot be read as a whole is read as far as it can. */
const unescaped = (path: string): string =>
  path.replaceAll(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));

/** One line a request. Reads that succeed are many and say little; they are there for whoever turns the level down. */
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

/** As one of a request: who looks for it finds it by the same fields. */
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
