import type { ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { type TLSSocket, Server as TlsServer } from 'node:tls';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { networkOf, remoteIp } from '../client-network.ts';
import { type ConnectionLimits, ConnectionTable, type DropReason } from './connection-table.ts';
import { interceptConnections, peerOf } from './intercept.ts';
import { networkMatcher } from './network-list.ts';

export interface FairConnectionsOptions {
  readonly limits: ConnectionLimits;
  /** Addresses and networks of trusted proxies. Their connections carry many clients, so they have no maximum share. */
  readonly trustedProxies: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** Minimum interval between log lines about drops, in milliseconds. Drops between two lines are counted. */
const logEveryMs = 60_000;

/**
 * Divides the connections of an HTTP or HTTPS server among networks, according to the rules of {@link ConnectionTable}.
 */
export class FairConnections {
  private readonly table: ConnectionTable<Socket>;
  private readonly isProxy: (address: string) => boolean;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly handshakes = new Map<string, Socket>();
  /** Maps the sockets on which requests arrive to the accepted sockets. With TLS, the two differ. */
  private readonly accepted = new WeakMap<Socket, Socket>();
  private readonly droppedSinceStart: Record<DropReason, number> = { share: 0, full: 0 };
  private unlogged = { count: 0, network: '' };
  private logging = false;

  constructor(server: Server, { limits, trustedProxies, clock, log }: FairConnectionsOptions) {
    this.table = new ConnectionTable(limits);
    this.isProxy = networkMatcher(trustedProxies);
    this.clock = clock;
    this.log = log;
    const proceed = interceptConnections(server, (socket) => {
      if (this.add(socket, server instanceof TlsServer)) proceed(socket);
    });
    server.on('secureConnection', (socket: TLSSocket) => {
      const peer = peerOf(socket);
      const accepted = this.handshakes.get(peer);
      if (accepted === undefined) return;
      this.handshakes.delete(peer);
      this.accepted.set(socket, accepted);
    });
    // Must be registered before the listener that routes the request, because routing may call `signedIn`.
    server.prependListener('request', ({ socket }: { socket: Socket }, response: ServerResponse) => {
      const connection = this.acceptedOf(socket);
      if (this.table.requestReceived(connection)) response.once('close', () => this.table.ended(connection));
    });
    server.prependListener('upgrade', ({ socket }: { socket: Socket }) =>
      this.table.requestReceived(this.acceptedOf(socket)),
    );
  }

  /** Number of open connections, and number of connections dropped since startup. */
  get stats(): { open: number; dropped: Readonly<Record<DropReason, number>> } {
    return { open: this.table.size, dropped: this.droppedSinceStart };
  }

  /** Protects the connection of a client that presented a valid session, ticket, or token. */
  signedIn(socket: Socket): void {
    this.table.signedIn(this.acceptedOf(socket));
  }

  /** Closes connections that are in their TLS handshake. Otherwise, the server's `close` would wait for them. */
  endHandshakes(): void {
    for (const socket of this.handshakes.values()) socket.destroy();
  }

  private acceptedOf(socket: Socket): Socket {
    return this.accepted.get(socket) ?? socket;
  }

  /** @returns false if the connection was refused and closed */
  private add(socket: Socket, tls: boolean): boolean {
    // Without an error listener, an error on a waiting socket would crash the process.
    socket.on('error', ignore);
    const address = remoteIp(socket);
    if (address === '') {
      socket.destroy();
      return false;
    }
    const network = networkOf(address);
    const dropped = this.table.add(socket, network, this.isProxy(address));
    if (dropped !== null) {
      dropped.connection.destroy();
      this.recordDrop(dropped.reason, network);
      if (dropped.connection === socket) return false;
    }
    const peer = peerOf(socket);
    if (tls) this.handshakes.set(peer, socket);
    socket.once('close', () => {
      this.table.delete(socket);
      if (this.handshakes.get(peer) === socket) this.handshakes.delete(peer);
    });
    return true;
  }

  private recordDrop(reason: DropReason, network: string): void {
    this.droppedSinceStart[reason]++;
    this.unlogged = { count: this.unlogged.count + 1, network };
    if (!this.logging) this.writeLog();
  }

  private writeLog(): void {
    const { count, network } = this.unlogged;
    this.logging = count > 0;
    if (count === 0) return;
    this.unlogged = { count: 0, network: '' };
    this.log.warn(
      { dropped: count, open: this.table.size, newest_from: network },
      'dropped API connections over the per-network or per-port limit',
    );
    this.clock.after(logEveryMs, () => this.writeLog());
  }
}

function ignore(): void {}
