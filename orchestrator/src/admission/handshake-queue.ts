import type { Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import type { Log } from '../../../lib/src/log.ts';
import { networkOf, remoteIp } from '../client-network.ts';
import type { AttendedClock } from './attended-clock.ts';
import { interceptConnections, peerOf } from './intercept.ts';
import { nextNetwork } from './next-network.ts';

/** Times in milliseconds. */
export interface HandshakeLimits {
  /** Places: connections whose handshake has begun, and for which the server is not done. */
  readonly handshakesInFlight: number;
  /** Handshakes that begin in one turn of the event loop. */
  readonly handshakesPerTurn: number;
  /** A connection that takes longer than this gives its place to the next, and goes on without one. */
  readonly handshakePlaceMs: number;
  /** Connections of one network whose handshake has begun and for which the server is not done, with a place or without. */
  readonly unfinishedOfNetwork: number;
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

interface Begun {
  network: string;
  since: number;
  /** `kept`: until the server is done, however long that takes. `lost`: it went to the next after a while. */
  place: 'held' | 'kept' | 'lost';
}

/** Numbers by network. Those that are 0 are left out. */
class Counts extends Map<string, number> {
  of(network: string): number {
    return this.get(network) ?? 0;
  }

  add(network: string, difference: 1 | -1): void {
    const count = this.of(network) + difference;
    if (count === 0) this.delete(network);
    else this.set(network, count);
  }
}

/**
 * Admits the sockets of a TLS server to their handshakes a few at a time. A handshake costs half a millisecond of the one
 * event loop, so thousands of clients that dial at once would keep everything else waiting; here they wait, unread, in
 * the kernel. The network with the fewest places has the next one, so that one peer with many sockets, silent or not,
 * does not hold up the rest.
 *
 * The server is made with `pauseOnConnect`, and its owner calls `tick` a few times a second.
 */
export class HandshakeQueue {
  private readonly clock: AttendedClock;
  private readonly log: Log;
  private readonly limits: HandshakeLimits;
  private readonly waiting = new Map<string, Waiting[]>();
  private waitingCount = 0;
  /** Connections whose handshake has begun and for which the server is not done, by peer; oldest first. */
  private readonly begun = new Map<string, Begun>();
  /** How many there are of each network, and how many places it has. */
  private readonly unfinished = new Counts();
  private readonly held = new Counts();
  private placesTaken = 0;
  private unlogged = 0;
  private droppedCount = 0;
  private scheduled = false;
  private readonly mayBegin: (network: string) => boolean;
  private readonly startHandshake: (socket: Socket) => void;
  /** One function for all sockets: a closure each would be kept for as long as its link. */
  private readonly onClose: (this: Socket) => void;

  /**
   * @param options.clock    the queue ticks it
   * @param options.mayBegin whether a network's turn may come now; asked again at each tick
   * @param options.until    what a place is held for: the handshake, or all that follows until the owner calls `release`
   */
  constructor(
    server: TlsServer,
    options: {
      clock: AttendedClock;
      log: Log;
      limits: HandshakeLimits;
      until: 'handshake' | 'released';
      mayBegin?: (network: string) => boolean;
    },
  ) {
    const { mayBegin = () => true } = options;
    this.mayBegin = (network) => this.unfinished.of(network) < options.limits.unfinishedOfNetwork && mayBegin(network);
    this.clock = options.clock;
    this.log = options.log;
    this.limits = options.limits;
    const queue = this;
    this.onClose = function onClose() {
      queue.release(this);
    };
    this.startHandshake = interceptConnections(server, (socket) => this.enqueue(socket));
    server.on('drop', () => this.countDrop());
    if (options.until === 'handshake') server.on('secureConnection', (socket: TLSSocket) => this.release(socket));
    server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.log.debug({ remote_ip: remoteIp(socket), error: error.message }, 'TLS handshake failed');
      this.release(socket);
      socket.destroy();
    });
  }

  /** Sockets that were dropped since the start because too many waited, or waited too long. */
  get dropped(): number {
    return this.droppedCount;
  }

  /** Places that are taken, and sockets that wait for one. */
  get load(): { places: number; waiting: number } {
    return { places: this.placesTaken, waiting: this.waitingCount };
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

  private get hasPlace(): boolean {
    return this.waitingCount > 0 && this.placesTaken < this.limits.handshakesInFlight;
  }

  /** Handshakes begin in a turn of the loop of their own, so that timers and other sockets get theirs in between. */
  private schedule(): void {
    if (this.scheduled || !this.hasPlace) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      for (let begun = 0; this.hasPlace; begun++) {
        if (begun === this.limits.handshakesPerTurn) return this.schedule();
        if (!this.begin()) return;
      }
    });
  }

  /** @returns false when no network may begin one now */
  private begin(): boolean {
    const network = nextNetwork(this.waiting.keys(), this.held, this.mayBegin);
    if (network === null) return false;
    const queue = this.waiting.get(network)!;
    const { socket } = queue.shift()!;
    this.waitingCount--;
    // To the end of the turns.
    this.waiting.delete(network);
    if (queue.length > 0) this.waiting.set(network, queue);
    if (socket.destroyed) return true;
    this.begun.set(peerOf(socket), { network, since: this.clock.monotonic(), place: 'held' });
    this.unfinished.add(network, 1);
    this.held.add(network, 1);
    this.placesTaken++;
    socket.once('close', this.onClose);
    this.startHandshake(socket);
    return true;
  }

  /** From here on it is the server that takes its time with this connection: its place is its own until `release`. */
  keepPlace(socket: Socket): void {
    const begun = this.begun.get(peerOf(socket));
    if (begun?.place === 'held') begun.place = 'kept';
  }

  /** The server is done with this connection, or has let it in: the next may begin. Does nothing the second time. */
  release(socket: Socket): void {
    const peer = peerOf(socket);
    const begun = this.begun.get(peer);
    if (begun === undefined) return;
    this.begun.delete(peer);
    this.unfinished.add(begun.network, -1);
    this.losePlace(begun);
    this.schedule();
  }

  private losePlace(begun: Begun): void {
    if (begun.place === 'lost') return;
    begun.place = 'lost';
    this.held.add(begun.network, -1);
    this.placesTaken--;
  }

  /** Frees the places of slow handshakes and drops sockets that waited too long. Called by the gateway's timer. */
  tick(): void {
    this.clock.tick();
    const now = this.clock.monotonic();
    for (const begun of this.begun.values()) {
      if (now - begun.since < this.limits.handshakePlaceMs) break;
      if (begun.place === 'held') this.losePlace(begun);
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
        'connections dropped: too many to admit in time',
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
