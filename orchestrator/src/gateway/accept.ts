import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { GatewayLimits } from './limits.ts';

interface Waiting {
  socket: Socket;
  since: number;
}

const plainIp = (address: string | undefined): string => (address ?? '').replace(/^::ffff:/, '');

/** The address of the other end, IPv4 without its IPv6 dress; empty once the socket is gone. */
export const remoteIp = (socket: Socket): string => plainIp(socket.remoteAddress);

/** Whose turn an address is: an IPv6 host has its whole /64 to dial from, so that is one. */
export function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip;
  const [left = '', right] = ip.replace(/%.*$/, '').split('::');
  const [before, after] = [left, right ?? ''].map((part) => (part === '' ? [] : part.split(':'))) as [
    string[],
    string[],
  ];
  const zeros = right === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  return [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, 4).join(':');
}

/** What tells two sockets of one server apart, the same before and after TLS. */
const peerOf = (socket: Socket): string => `${socket.remoteAddress}|${socket.remotePort}`;

/**
 * Admits sockets to TLS a few at a time. A handshake costs half a millisecond of the one event loop, so thousands of
 * agents that dial at once would keep everything else waiting; here they wait, unread, in the kernel. Addresses take
 * turns, so that one peer with many sockets does not hold up the rest.
 */
export class Admission {
  readonly server: Server;
  private readonly tls: TlsServer;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly limits: GatewayLimits;
  private readonly waiting = new Map<string, Waiting[]>();
  private waitingCount = 0;
  /** Handshakes that hold a place, by peer, with when they began; oldest first. */
  private readonly handshakes = new Map<string, number>();
  private dropped = 0;
  private scheduled = false;
  /** One function for all sockets: a closure each would be kept for as long as its link. */
  private readonly onClose: (this: Socket) => void;

  constructor(tls: TlsServer, options: { clock: Clock; log: Log; limits: GatewayLimits }) {
    this.tls = tls;
    this.clock = options.clock;
    this.log = options.log;
    this.limits = options.limits;
    const admission = this;
    this.onClose = function onClose() {
      admission.release(peerOf(this));
    };
    this.server = createTcpServer({
      pauseOnConnect: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
    });
    this.server.maxConnections = options.limits.connections;
    this.server.on('connection', (socket) => this.enqueue(socket));
    this.server.on('drop', () => {
      this.dropped++;
    });
    tls.on('secureConnection', (socket: TLSSocket) => this.release(peerOf(socket)));
    tls.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.log.debug({ remote_ip: remoteIp(socket), error: error.message }, 'TLS handshake failed');
      this.release(peerOf(socket));
      socket.destroy();
    });
  }

  /** Places that are taken, and sockets that wait for one. */
  get load(): { handshakes: number; waiting: number } {
    return { handshakes: this.handshakes.size, waiting: this.waitingCount };
  }

  private enqueue(socket: Socket): void {
    // Without a listener an error of a waiting socket would end the process.
    socket.on('error', ignore);
    const network = networkOf(remoteIp(socket));
    const queue = this.waiting.get(network);
    if ((queue?.length ?? 0) >= this.limits.waitingSocketsPerAddress || !this.makeRoom(queue)) {
      this.dropped++;
      socket.destroy();
      return;
    }
    const waiting = { socket, since: this.clock.monotonic() };
    if (queue) queue.push(waiting);
    else this.waiting.set(network, [waiting]);
    this.waitingCount++;
    this.schedule();
  }

  /**
   * When all places are taken, the newest socket of the address with the most goes, unless that is the one that asks.
   * @param asking what waits of the address of the new socket
   */
  private makeRoom(asking: Waiting[] | undefined): boolean {
    if (this.waitingCount < this.limits.waitingSockets) return true;
    let longest: Waiting[] = [];
    for (const queue of this.waiting.values()) if (queue.length > longest.length) longest = queue;
    if (longest.length <= (asking?.length ?? 0) + 1) return false;
    longest.pop()!.socket.destroy();
    this.waitingCount--;
    this.dropped++;
    return true;
  }

  /** Handshakes begin in a turn of the loop of their own, so that timers and other sockets get theirs in between. */
  private schedule(): void {
    if (this.scheduled || this.waitingCount === 0 || this.handshakes.size >= this.limits.handshakesInFlight) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      while (this.waitingCount > 0 && this.handshakes.size < this.limits.handshakesInFlight) this.begin();
    });
  }

  private begin(): void {
    const [network, queue] = this.waiting.entries().next().value!;
    const { socket } = queue.shift()!;
    this.waitingCount--;
    // To the end of the turns.
    this.waiting.delete(network);
    if (queue.length > 0) this.waiting.set(network, queue);
    if (socket.destroyed) return;
    this.handshakes.set(peerOf(socket), this.clock.monotonic());
    socket.once('close', this.onClose);
    this.tls.emit('connection', socket);
  }

  private release(peer: string): void {
    if (this.handshakes.delete(peer)) this.schedule();
  }

  /** Frees the places of slow handshakes and drops sockets that waited too long. Called by the gateway's timer. */
  tick(): void {
    const now = this.clock.monotonic();
    for (const [peer, begun] of this.handshakes) {
      if (now - begun < this.limits.handshakePlaceMs) break;
      this.handshakes.delete(peer);
    }
    for (const [ip, queue] of this.waiting) {
      while (queue.length > 0 && now - queue[0]!.since >= this.limits.waitingTimeoutMs) {
        queue.shift()!.socket.destroy();
        this.waitingCount--;
        this.dropped++;
      }
      if (queue.length === 0) this.waiting.delete(ip);
    }
    if (this.dropped > 0) {
      this.log.warn(
        { dropped: this.dropped, waiting: this.waitingCount },
        'more agents dialled than could be admitted',
      );
      this.dropped = 0;
    }
    this.schedule();
  }

  /** Takes no more sockets and drops those that wait. */
  close(): void {
    if (this.server.listening) this.server.close();
    for (const queue of this.waiting.values()) for (const { socket } of queue) socket.destroy();
    this.waiting.clear();
    this.waitingCount = 0;
  }
}

function ignore(): void {}
