import { constants as tlsConstants } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createServer as createTlsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type ServerOptions, WebSocketServer } from 'ws';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import type { AttendedClock } from '../../admission/attended-clock.ts';
import { HandshakeQueue } from '../../admission/handshake-queue.ts';
import { ProxiedConnections } from '../../admission/proxied-connections.ts';
import { remoteIp } from '../../client-network.ts';
import type { Identity } from '../../identity/identity.ts';
import { Deadlines } from '../deadlines.ts';
import type { GatewayLimits } from '../limits.ts';
import { LinkSocket } from '../link.ts';

export interface AgentPortOptions {
  identity: Identity;
  clock: Clock;
  /** Clock for the deadlines before the welcome. It does not advance while the process is blocked. */
  attended: AttendedClock;
  limits: GatewayLimits;
  log: Log;
  /** Addresses and networks whose connections must begin with a PROXY protocol header. */
  proxyNetworks: readonly string[];
  /** Reports whether a handshake from the network may begin. */
  mayBegin: (network: string) => boolean;
  /** Called for each WebSocket connection. */
  onConnection: (ws: LinkSocket, socket: TLSSocket) => void;
}

/** The port on which agents connect: TCP, TLS, and the WebSocket upgrade. */
export class AgentPort {
  private readonly options: AgentPortOptions;
  private readonly tls: HttpsServer;
  private readonly sockets: WebSocketServer;
  private readonly handshakes: HandshakeQueue;
  /** Reads the headers of TCP balancers; null if none are configured. */
  private readonly proxied: ProxiedConnections | null;
  /** Sockets that finished the TLS handshake but sent no WebSocket upgrade request yet. */
  private readonly upgrades: Deadlines<TLSSocket>;

  constructor(options: AgentPortOptions) {
    const { clock, attended, limits, log, proxyNetworks: networks, mayBegin } = options;
    this.options = options;
    this.upgrades = new Deadlines(limits.helloTimeoutMs);
    const socketOptions: ServerOptions<typeof LinkSocket> & { closeTimeout: number } = {
      noServer: true,
      WebSocket: LinkSocket,
      perMessageDeflate: false,
      maxPayload: limits.agentFrameBytes,
      maxFragments: 64,
      maxBufferedChunks: 1024,
      // `Link` sends the pongs, because it must count pings.
      autoPong: false,
      clientTracking: false,
      closeTimeout: limits.closeTimeoutMs,
    };
    this.sockets = new WebSocketServer(socketOptions);
    this.tls = this.createTlsServer();
    this.handshakes = new HandshakeQueue(this.tls, { clock: attended, log, limits, until: 'released', mayBegin });
    this.proxied = networks.length === 0 ? null : new ProxiedConnections(this.tls, { networks, clock, log });
  }

  /** Number of connections dropped before their handshake. */
  get dropped(): number {
    return this.handshakes.dropped;
  }

  /**
   * Listens for the first time, or again after `stopListening`.
   * @param port 0 for any free port
   * @returns the actual port
   */
  listen(host: string, port: number): Promise<number> {
    const { tls: server } = this;
    return new Promise((resolve, reject) => {
      const onListening = () => {
        server.removeListener('error', onFailure).on('error', this.onServerError);
        resolve((server.address() as AddressInfo).port);
      };
      const onFailure = (error: Error) => {
        server.removeListener('listening', onListening);
        reject(error);
      };
      server.removeListener('error', this.onServerError).once('error', onFailure).once('listening', onListening);
      server.listen({ host, port, backlog: 1024 });
    });
  }

  private readonly onServerError = (error: Error): void =>
    this.options.log.error({ err: error }, 'server error on the agent port');

  stopListening(): void {
    if (this.tls.listening) this.tls.close();
    this.proxied?.close();
    this.handshakes.close();
  }

  /** Keeps the place of a connection among the handshakes until `release`. */
  keepSlot(socket: TLSSocket): void {
    this.handshakes.keepSlot(socket);
  }

  release(socket: TLSSocket): void {
    this.handshakes.release(socket);
  }

  tick(): void {
    this.handshakes.tick();
    for (const socket of this.upgrades.expired(this.options.attended.monotonic())) {
      this.options.log.debug({ remote_ip: remoteIp(socket) }, 'connection closed: no upgrade request in time');
      socket.destroy();
    }
  }

  /** Closes the connections that are not links yet. Call `stopListening` before. */
  close(): void {
    for (const socket of this.upgrades.drain()) socket.destroy();
    this.sockets.close();
  }

  private createTlsServer(): HttpsServer {
    const { identity, limits, log, attended } = this.options;
    const server = createTlsServer(
      {
        key: identity.privateKeyPem,
        cert: identity.certificatePem,
        minVersion: 'TLSv1.3',
        maxVersion: 'TLSv1.3',
        secureOptions: tlsConstants.SSL_OP_NO_TICKET,
        maxHeaderSize: 4096,
        // The handshake queue resumes each socket when its handshake may start.
        pauseOnConnect: true,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: 60_000,
      },
      (_request, response) => {
        response.writeHead(426, { connection: 'close', 'content-length': 0 }).end();
      },
    );
    server.maxConnections = limits.connections;
    server.on('secureConnection', (socket) => this.upgrades.add(socket, attended.monotonic()));
    server.on('upgrade', (request: IncomingMessage, socket, head) =>
      this.onUpgrade(request, socket as TLSSocket, head),
    );
    server.on('clientError', (error, socket) => {
      log.debug(
        { remote_ip: remoteIp(socket as TLSSocket), error: error.message },
        'connection closed: invalid HTTP request',
      );
      socket.destroy();
    });
    return server;
  }

  private onUpgrade(request: IncomingMessage, socket: TLSSocket, head: Buffer): void {
    this.upgrades.delete(socket);
    socket.on('error', destroy);
    this.sockets.handleUpgrade(request, socket, head, (ws) => {
      socket.removeListener('error', destroy);
      this.options.onConnection(ws as LinkSocket, socket);
    });
  }
}

function destroy(this: TLSSocket): void {
  this.destroy();
}
