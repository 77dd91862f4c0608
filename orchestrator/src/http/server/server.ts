import type { IncomingMessage } from 'node:http';
import type { Server as TlsServer } from 'node:tls';
import { MusterError } from '@muster/protocol';
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  type RawServerDefault,
} from 'fastify';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import { AttendedClock } from '../../admission/attended-clock.ts';
import { FairConnections } from '../../admission/fair-connections.ts';
import { HandshakeQueue } from '../../admission/handshake-queue.ts';
import { ProxiedConnections } from '../../admission/proxied-connections.ts';
import { acceptArchives, isUploading } from '../archive-body.ts';
import { readJson } from './body.ts';
import { refuseConnection } from './fallback.ts';
import { parseQuery } from './query.ts';

export interface ServerLimits {
  /** Maximum size of the request line and headers, in bytes. */
  readonly headerBytes: number;
  /** Time limit for receiving the headers, in milliseconds. */
  readonly headersTimeout: number;
  /** Time limit for receiving the whole request, in milliseconds. */
  readonly requestTimeout: number;
  /** Milliseconds after which an idle connection is closed. */
  readonly keepAliveTimeout: number;
  /** Maximum duration of a TLS handshake, and maximum wait before it starts, in milliseconds. */
  readonly handshakeTimeout: number;
  /**
   * Maximum number of connections. A connection above the maximum replaces an existing unauthenticated connection,
   * preferably one that has not sent a request.
   */
  readonly connections: number;
  /** Maximum number of unauthenticated connections from one IPv4 address or IPv6 /64. Trusted proxies are exempt. */
  readonly connectionsOfNetwork: number;
}

export interface ServerOptions {
  /** Certificate and key in PEM. If omitted, the server uses plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly trustedProxies: readonly string[];
  /** Addresses and networks whose connections must begin with a PROXY protocol header. */
  readonly proxyNetworks: readonly string[];
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly log: Log;
  /** Reports whether a request is an upgrade, for which the server emits `upgrade`. */
  readonly upgrades: (request: IncomingMessage) => boolean;
  /** Returns a request's ID. @param given the ID in the request's header, if any */
  readonly requestId: (given?: string | string[] | undefined) => string;
  /** Responds to a request whose URL cannot be parsed. Hooks do not run for such a request. */
  readonly badAddress: (error: Error, request: FastifyRequest, reply: FastifyReply) => void;
}

/** Creates the server with the limits that apply to all routes. The server itself logs only dropped connections. */
export function createServer({
  tls,
  trustedProxies,
  proxyNetworks,
  limits,
  upgrades,
  requestId,
  badAddress,
  clock,
  log,
}: ServerOptions): { app: FastifyInstance; connections: FairConnections } {
  const http = {
    headersTimeout: limits.headersTimeout,
    maxHeaderSize: limits.headerBytes,
    shouldUpgradeCallback: upgrades,
    // The server checks timeouts at this interval.
    connectionsCheckingInterval: Math.min(5_000, limits.headersTimeout),
  };
  const options: FastifyServerOptions<RawServerDefault> = {
    logger: false,
    genReqId: (request) => requestId(request.headers['x-request-id']),
    requestTimeout: limits.requestTimeout,
    keepAliveTimeout: limits.keepAliveTimeout,
    // While draining, the app responds with status 503 and a problem document.
    return503OnClosing: false,
    frameworkErrors: badAddress,
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isUploading(socket)) return;
      refuseConnection(error, socket as Parameters<typeof refuseConnection>[1], requestId());
    },
    routerOptions: {
      querystringParser: (text) => parseQuery(text) as unknown as Record<string, unknown>,
      // Accepts IDs of any length, which handlers report as unknown. The maximum header size limits their length.
      maxParamLength: limits.headerBytes,
    },
    ...(trustedProxies.length > 0 ? { trustProxy: [...trustedProxies] } : {}),
  };
  const app = tls
    ? (fastify({
        ...options,
        https: {
          ...http,
          ...tls,
          minVersion: 'TLSv1.2',
          pauseOnConnect: true,
        },
      } as never) as unknown as FastifyInstance)
    : fastify({ ...options, http } as FastifyServerOptions<RawServerDefault>);
  if (tls) queueHandshakes(app, limits, clock, log);
  const connections = new FairConnections(app.server, {
    limits: { connections: limits.connections, exposedOfNetwork: limits.connectionsOfNetwork },
    trustedProxies,
    clock,
    log,
  });
  if (proxyNetworks.length > 0) {
    const proxied = new ProxiedConnections(app.server, { networks: proxyNetworks, clock, log });
    app.addHook('preClose', async () => proxied.close());
  }
  readJsonOnly(app);
  acceptArchives(app);
  return { app, connections };
}

/** Interval, in milliseconds, at which slots of slow handshakes are freed for other connections. */
const handshakeTickMs = 100;

/** Queues TLS handshakes and starts them in turn for each network, so that many handshakes do not delay responses. */
function queueHandshakes(app: FastifyInstance, limits: ServerOptions['limits'], clock: Clock, log: Log): void {
  const queue = new HandshakeQueue(app.server as unknown as TlsServer, {
    clock: new AttendedClock(clock, 2 * handshakeTickMs),
    log,
    until: 'handshake',
    limits: {
      handshakesInFlight: 32,
      handshakesPerTurn: 8,
      handshakeSlotMs: 250,
      // No limit, because a proxy carries many clients and FairConnections already limits connections per network.
      unfinishedOfNetwork: limits.connections,
      waitingSockets: limits.connections,
      waitingSocketsPerAddress: limits.connections,
      handshakeTimeoutMs: limits.handshakeTimeout,
      waitingTimeoutMs: limits.handshakeTimeout,
    },
  });
  let cancelTimer = () => {};
  const tick = () => {
    queue.tick();
    cancelTimer = clock.after(handshakeTickMs, tick);
  };
  app.server.once('listening', tick);
  app.addHook('preClose', async () => {
    cancelTimer();
    queue.close();
  });
}

/** Accepts only uncompressed JSON bodies in UTF-8. Each route determines whether its body may be empty. */
function readJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined);
    const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(request.headers['content-type'] ?? '')?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset))
      return done(new MusterError('unsupported_media_type', 'JSON must be UTF-8.'));
    const encoding = request.headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
      return done(new MusterError('unsupported_media_type', 'Bodies must not have a content encoding.'));
    try {
      done(null, readJson(body));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    if (body.length === 0) done(null, undefined);
    else done(new MusterError('unsupported_media_type'));
  });
}
