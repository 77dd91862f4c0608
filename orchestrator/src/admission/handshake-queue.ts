import type { Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import { networkOf, remoteIp } from '../client-network.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { interceptConnections, peerOf } from './intercept.ts';

/** Times in milliseconds. */
export interface HandshakeLimits {
  /** TLS handshakes begun and not ended. */
  readonly handshakesInFlight: number;
  /** A handshake that takes longer than this gives its place to the next, and goes on without one. */
  readonly handshakePlaceMs: number;
  /** Sockets that wait for their handshake to begin. */
  readonly waitingSockets: number;
  /** Of them, those of one network. */
  readonly waitingSocketsPerAddress: number;
  readonly waitingTimeoutMs: number;
}

interface Waiting {
  socket: Socket;
  since: number;
}

/**
 * Admits the sockets of a TLS server to their handshakes a few at a time. A handshake costs half a millisecond of the one
 * event loop, so thousands of clients that dial at once would keep everything else waiting; here they wait, unread, in
 * the kernel. Networks take turns, so that one peer with many sockets does not hold up the rest.
 *
 * The server is made with `pauseOnConnect`, and its owner calls `tick` a few times a second.
 */
export class HandshakeQueue {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly limits: HandshakeLimits;
  private readonly waiting = new Map<string, Waiting[]>();
  private waitingCount = 0;
  /** Handshakes that hold a place, by peer, with when they began; oldest first. */
  private readonly handshakes = new Map<string, number>();
  private unlogged = 0;
  private droppedCount = 0;
  private scheduled = false;
  private readonly mayBegin: (network: string) => boolean;
  private readonly startHandshake: (socket: Socket) => void;
  /** One function for all sockets: a closure each would be kept for as long as its link. */
  private readonly onClose: (this: Socket) => void;

  /** @param options.mayBegin whether a network's turn may come now; asked again at each tick */
  constructor(
    server: TlsServer,
    options: { clock: Clock; log: Log; limits: HandshakeLimits; mayBegin?: (network: string) => boolean },
  ) {
    this.mayBegin = options.mayBegin ?? (() => true);
    this.clock = options.clock;
    this.log = options.log;
    this.limits = options.limits;
    const queue = this;
    this.onClose = function onClose() {
      queue.release(peerOf(this));
    };
    this.startHandshake = interceptConnections(server, (socket) => this.enqueue(socket));
    server.on('drop', () => this.countDrop());
    server.on('secureConnection', (socket: TLSSocket) => this.release(peerOf(socket)));
    server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.log.debug({ remote_ip: remoteIp(socket), error: error.message }, 'TLS handshake failed');
      this.release(peerOf(socket));
      socket.destroy();
    });
  }

  /** Sockets that were dropped since the start because too many waited, or waited too long. */
  get dropped(): number {
    return this.droppedCount;
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
      this.countDrop();
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
    this.countDrop();
    return true;
  }

  /** Handshakes begin in a turn of the loop of their own, so that timers and other sockets get theirs in between. */
  private schedule(): void {
    if (this.scheduled || this.waitingCount === 0 || this.handshakes.size >= this.limits.handshakesInFlight) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      while (this.waitingCount > 0 && this.handshakes.size < this.limits.handshakesInFlight && this.begin());
    });
  }

  /** @returns false when no network may begin one now */
  private begin(): boolean {
    const network = this.nextNetwork();
    if (network === null) return false;
    const queue = this.waiting.get(network)!;
    const { socket } = queue.shift()!;
    this.waitingCount--;
    // To the end of the turns.
    this.waiting.delete(network);
    if (queue.length > 0) this.waiting.set(network, queue);
    if (socket.destroyed) return true;
    this.handshakes.set(peerOf(socket), this.clock.monotonic());
    socket.once('close', this.onClose);
    this.startHandshake(socket);
    return true;
  }

  private nextNetwork(): string | null {
    for (const network of this.waiting.keys()) if (this.mayBegin(network)) return network;
    return null;
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
        this.countDrop();
      }
      if (queue.length === 0) this.waiting.delete(ip);
    }
    if (this.unlogged > 0) {
      this.log.warn(
        { dropped: this.unlogged, waiting: this.waitingCount },
        'connections dropped: more came than could be admitted in time',
      );
      this.unlogged = 0;
    }
    this.schedule();
  }

  private countDrop(): void {
    this.unlogged++;
    this.droppedCount++;
  }

  /** Drops the sockets that wait. */
  close(): void {
    for (const queue of this.waiting.values()) for (const { socket } of queue) socket.destroy();
    this.waiting.clear();
    this.waitingCount = 0;
  }
}

function ignore(): void {}
