import type { Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import type { Log } from '../../../lib/src/log.ts';
import { networkOf, remoteIp } from '../client-network.ts';
import type { AttendedClock } from './attended-clock.ts';
import { interceptConnections, peerOf } from './intercept.ts';
import { nextNetwork } from './next-network.ts';

/** Handshake queue limits. Times are in milliseconds. */
export interface HandshakeLimits {
  /** Maximum number of connections that occupy a slot, during their handshake or until their release. */
  readonly handshakesInFlight: number;
  /** Maximum number of handshakes started per event-loop turn. */
  readonly handshakesPerTurn: number;
  /** Time after which a connection loses its slot to the next connection. Its handshake continues. */
  readonly handshakeSlotMs: number;
  /** Time after which a TLS handshake is aborted. */
  readonly handshakeTimeoutMs: number;
  /** Maximum number of started but not yet released connections per network, including those that lost their slot. */
  readonly unfinishedOfNetwork: number;
  /** Maximum number of sockets waiting for their handshake to start. */
  readonly waitingSockets: number;
  /** Maximum waiting sockets per network. */
  readonly waitingSocketsPerAddress: number;
  readonly waitingTimeoutMs: number;
}

interface Waiting {
  socket: Socket;
  since: number;
}

interface StartedConnection {
  network: string;
  /** The socket below TLS during the handshake; null after the handshake. */
  handshake: Socket | null;
  since: number;
  /**
   * `held`: until `release` or a time limit. `kept`: until `release`. `lost`: the slot was assigned to another
   * connection.
   */
  slot: 'held' | 'kept' | 'lost';
}

/** The count for each network. Networks with a count of 0 are removed. */
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
 * Starts the handshakes of a TLS server, a few at a time. Each handshake blocks the event loop for 0.5 ms, so thousands
 * of simultaneous clients would block all other work. Waiting sockets are not read. The network with the fewest slots
 * is served next, so that a peer with many sockets, silent or not, does not delay others. Create the server with
 * `pauseOnConnect`, and call `tick` a few times per second.
 */
export class HandshakeQueue {
  private readonly clock: AttendedClock;
  private readonly log: Log;
  private readonly limits: HandshakeLimits;
  private readonly waiting = new Map<string, Waiting[]>();
  private waitingCount = 0;
  /** Started connections that have not been released yet, by peer, oldest first. */
  private readonly started = new Map<string, StartedConnection>();
  /** Number of connections and slots per network. */
  private readonly unfinished = new Counts();
  private readonly slotsOf = new Counts();
  private slotsTaken = 0;
  private unlogged = 0;
  private droppedCount = 0;
  private scheduled = false;
  private readonly mayBegin: (network: string) => boolean;
  private readonly startHandshake: (socket: Socket) => void;
  /** Shared by all sockets, because a closure per socket would use memory until the link closes. */
  private readonly onClose: (this: Socket) => void;

  /**
   * @param options.clock the queue calls this clock's `tick`
   * @param options.mayBegin reports whether a handshake from the network may start now; called on each tick
   * @param options.until when a slot becomes free: with `handshake`, after the handshake; otherwise, when the owner
   *   calls `release`
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
    server.on('secureConnection', (socket: TLSSocket) => {
      const connection = this.started.get(peerOf(socket));
      if (connection !== undefined) connection.handshake = null;
      if (options.until === 'handshake') this.release(socket);
    });
    server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.log.debug({ remote_ip: remoteIp(socket), error: error.message }, 'TLS handshake failed');
      this.release(socket);
      socket.destroy();
    });
  }

  /** Number of sockets dropped since startup because the queue was full or their wait timed out. */
  get dropped(): number {
    return this.droppedCount;
  }

  get load(): { slots: number; waiting: number } {
    return { slots: this.slotsTaken, waiting: this.waitingCount };
  }

  private enqueue(socket: Socket): void {
    // Without an error listener, an error on a waiting socket would crash the process.
    socket.on('error', ignore);
    const network = networkOf(remoteIp(socket));
    const queue = this.waiting.get(network);
    if ((queue?.length ?? 0) >= this.limits.waitingSocketsPerAddress || !this.freeWaitingSpace(queue)) {
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
   * If the queue is full, drops the newest socket from the network with the most waiting sockets.
   * @param asking waiting sockets from the new socket's network
   * @returns false if the new socket itself must be dropped
   */
  private freeWaitingSpace(asking: Waiting[] | undefined): boolean {
    if (this.waitingCount < this.limits.waitingSockets) return true;
    let longest: Waiting[] = [];
    for (const queue of this.waiting.values()) if (queue.length > longest.length) longest = queue;
    if (longest.length <= (asking?.length ?? 0) + 1) return false;
    longest.pop()!.socket.destroy();
    this.waitingCount--;
    this.countDrop();
    return true;
  }

  private get canStart(): boolean {
    return this.waitingCount > 0 && this.slotsTaken < this.limits.handshakesInFlight;
  }

  /** Starts a few handshakes in each event-loop turn, so that timers and other sockets are served in between. */
  private schedule(): void {
    if (this.scheduled || !this.canStart) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      for (let started = 0; this.canStart; started++) {
        if (started === this.limits.handshakesPerTurn) return this.schedule();
        if (!this.begin()) return;
      }
    });
  }

  /** @returns false if no handshake may start now */
  private begin(): boolean {
    const network = nextNetwork(this.waiting.keys(), this.slotsOf, this.mayBegin);
    if (network === null) return false;
    const queue = this.waiting.get(network)!;
    const { socket } = queue.shift()!;
    this.waitingCount--;
    // Moves the network to the end of the order.
    this.waiting.delete(network);
    if (queue.length > 0) this.waiting.set(network, queue);
    if (socket.destroyed) return true;
    this.started.set(peerOf(socket), { network, handshake: socket, since: this.clock.monotonic(), slot: 'held' });
    this.unfinished.add(network, 1);
    this.slotsOf.add(network, 1);
    this.slotsTaken++;
    socket.once('close', this.onClose);
    this.startHandshake(socket);
    return true;
  }

  /** Removes the time limit on the connection's slot, because the server is processing the connection. */
  keepSlot(socket: Socket): void {
    const connection = this.started.get(peerOf(socket));
    if (connection?.slot === 'held') connection.slot = 'kept';
  }

  /**
   * Releases the slot of a connection that the server has admitted or refused, so that the next connection may start.
   * Idempotent.
   */
  release(socket: Socket): void {
    const peer = peerOf(socket);
    const connection = this.started.get(peer);
    if (connection === undefined) return;
    this.started.delete(peer);
    this.unfinished.add(connection.network, -1);
    this.loseSlot(connection);
    this.schedule();
  }

  private loseSlot(connection: StartedConnection): void {
    if (connection.slot === 'lost') return;
    connection.slot = 'lost';
    this.slotsOf.add(connection.network, -1);
    this.slotsTaken--;
  }

  /** Frees the slots of slow handshakes, and aborts handshakes and waits that take too long. Call this from a timer. */
  tick(): void {
    this.clock.tick();
    const now = this.clock.monotonic();
    for (const connection of this.started.values()) {
      const age = now - connection.since;
      if (age < this.limits.handshakeSlotMs) break;
      if (connection.slot === 'held') this.loseSlot(connection);
      // Node's own timeout uses real time. After a long event-loop turn, it would abort handshakes whose clients
      // responded in time.
      if (age >= this.limits.handshakeTimeoutMs) connection.handshake?.destroy();
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
        'dropped connections that could not be admitted in time',
      );
      this.unlogged = 0;
    }
    this.schedule();
  }

  private countDrop(): void {
    this.unlogged++;
    this.droppedCount++;
  }

  /** Drops all waiting sockets. */
  close(): void {
    for (const queue of this.waiting.values()) for (const { socket } of queue) socket.destroy();
    this.waiting.clear();
    this.waitingCount = 0;
  }
}

function ignore(): void {}
