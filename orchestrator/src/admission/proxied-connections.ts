import type { Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { remoteIp } from '../client-network.ts';
import { AttendedClock } from './attended-clock.ts';
import { interceptConnections, peerOf, setClient } from './intercept.ts';
import { networkMatcher } from './network-list.ts';
import {
  type FixedPart,
  fixedBytes,
  type ProxiedClient,
  ProxyHeaderError,
  readClient,
  readFixedPart,
} from './proxy-protocol.ts';

export interface ProxiedConnectionsOptions {
  /** Addresses and networks of the balancers. */
  readonly networks: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** Maximum time for a balancer to send the header, in milliseconds. Balancers send it immediately. */
const headerTimeoutMs = 5_000;
const tickMs = 500;
/** Maximum number of connections whose header has not arrived. */
const maxPending = 10_000;
/** Minimum interval between log lines about refused connections, in milliseconds. */
const logEveryMs = 60_000;

interface Pending {
  readonly since: number;
  fixed: FixedPart | null;
}

const isLoopback = networkMatcher(['127.0.0.0/8', '::1']);

/**
 * Returns the client of a connection; null if the balancer itself counts as the client. A loopback address means a
 * client on the balancer's machine. Such a client counts only if the balancer runs on this machine, because requests
 * from this machine may contain secrets over plain HTTP.
 */
export const acceptedClient = (client: ProxiedClient | null, balancer: string): ProxiedClient | null =>
  client !== null && (!isLoopback(client.address) || isLoopback(balancer)) ? client : null;

/**
 * Reads the PROXY protocol header of each connection from the configured networks, and gives its sockets the address of
 * the client. Such a connection must begin with a header of version 2. Connections from other addresses are passed on
 * unread, so a header in one of them is an invalid TLS or HTTP message, which the server refuses.
 *
 * Create this after everything else that intercepts the server's connections, so that it comes first.
 */
export class ProxiedConnections {
  readonly #clock: AttendedClock;
  readonly #timers: Clock;
  readonly #log: Log;
  readonly #proceed: (socket: Socket) => void;
  /** Connections whose header has not arrived, oldest first. */
  readonly #pending = new Map<Socket, Pending>();
  /** Clients of connections that are in their TLS handshake, by connection. */
  readonly #clients = new Map<string, ProxiedClient>();
  #ticking = false;
  #unlogged = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(server: Server, { networks, clock, log }: ProxiedConnectionsOptions) {
    this.#timers = clock;
    this.#clock = new AttendedClock(clock, 2 * tickMs);
    this.#log = log;
    const isBalancer = networkMatcher(networks);
    this.#proceed = interceptConnections(server, (socket) => {
      if (isBalancer(remoteIp(socket))) this.#add(socket);
      else this.#proceed(socket);
    });
    // Other listeners of these events must already see the address of the client.
    const setOfTls = (socket: TLSSocket) => {
      const peer = peerOf(socket);
      const client = this.#clients.get(peer);
      if (client === undefined) return;
      this.#clients.delete(peer);
      setClient(socket, client);
    };
    server.prependListener('secureConnection', setOfTls);
    server.prependListener('tlsClientError', (_error: Error, socket: TLSSocket) => setOfTls(socket));
  }

  /** Closes the connections whose header has not arrived. Otherwise, the server's `close` would wait for them. */
  close(): void {
    for (const socket of [...this.#pending.keys()]) socket.destroy();
  }

  #add(socket: Socket): void {
    // Without an error listener, an error on a waiting socket would crash the process.
    socket.on('error', ignore);
    if (this.#pending.size >= maxPending) {
      this.#refuse(socket, 'too many connections have not sent their header');
      return;
    }
    this.#scheduleTick();
    const onReadable = () => this.#read(socket, stopReading);
    const stopReading = () => {
      this.#pending.delete(socket);
      socket.removeListener('readable', onReadable).removeListener('end', destroy);
    };
    this.#pending.set(socket, { since: this.#clock.monotonic(), fixed: null });
    socket.once('close', () => {
      this.#pending.delete(socket);
      this.#clients.delete(peerOf(socket));
    });
    // A connection without data is a health check of the balancer.
    socket.once('end', destroy);
    socket.on('readable', onReadable);
  }

  /** Reads the header as far as it has arrived. @param stopReading leaves the bytes after the header unread */
  #read(socket: Socket, stopReading: () => void): void {
    const pending = this.#pending.get(socket);
    if (pending === undefined) return;
    try {
      if (pending.fixed === null) {
        const bytes = take(socket, fixedBytes);
        if (bytes === null) return;
        pending.fixed = readFixedPart(bytes);
      }
      const { fixed } = pending;
      const rest = fixed.restBytes === 0 ? Buffer.alloc(0) : take(socket, fixed.restBytes);
      if (rest === null) return;
      stopReading();
      const client = acceptedClient(readClient(fixed, rest), remoteIp(socket));
      if (client !== null) {
        this.#clients.set(peerOf(socket), client);
        setClient(socket, client);
      }
      this.#proceed(socket);
    } catch (error) {
      if (!(error instanceof ProxyHeaderError)) throw error;
      this.#refuse(socket, error.message);
    }
  }

  #refuse(socket: Socket, reason: string): void {
    const remote_ip = remoteIp(socket);
    socket.destroy();
    this.#unlogged++;
    const now = this.#timers.monotonic();
    if (now - this.#loggedAt < logEveryMs) return;
    this.#log.warn({ remote_ip, reason, refused: this.#unlogged }, 'refused connections from proxy_protocol.networks');
    this.#loggedAt = now;
    this.#unlogged = 0;
  }

  #scheduleTick(): void {
    if (this.#ticking) return;
    this.#ticking = true;
    this.#clock.tick();
    this.#timers.after(tickMs, () => {
      this.#ticking = false;
      this.#clock.tick();
      const now = this.#clock.monotonic();
      for (const [socket, { since }] of this.#pending) {
        if (now - since < headerTimeoutMs) break;
        this.#refuse(socket, `no header arrived within ${headerTimeoutMs / 1000} s`);
      }
      if (this.#pending.size > 0) this.#scheduleTick();
    });
  }
}

/**
 * Reads exactly `size` bytes.
 * @returns null if they have not arrived yet
 * @throws ProxyHeaderError if the connection ended first
 */
function take(socket: Socket, size: number): Buffer | null {
  const bytes = socket.read(size) as Buffer | null;
  if (bytes !== null && bytes.length < size) throw new ProxyHeaderError('the connection ended within the header');
  return bytes;
}

function destroy(this: Socket): void {
  this.destroy();
}

function ignore(): void {}
