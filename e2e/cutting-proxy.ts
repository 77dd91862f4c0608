import { connect, createServer, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';

/** Both sockets of a connection, and the bytes on the way from the client to the target. */
interface Pair {
  readonly near: Socket;
  readonly counted: Transform;
  readonly far: Socket;
}

/**
 * A TCP proxy that can cut the connections between two programs: with a reset, silently, or after a number of bytes. Joins
 * sockets of clients with connections to one port on loopback.
 */
export class CuttingProxy {
  readonly #target: () => number;
  readonly #localAddress: string | undefined;
  readonly #pairs = new Set<Pair>();
  readonly #servers: Server[] = [];
  #cut: 'reset' | 'silent' | null = null;
  /** Callbacks of waiting connections, called when the proxy forwards bytes again. */
  #held: (() => void)[] = [];
  /** Number of bytes from clients to forward before the cut; null if no cut is pending. */
  #left: number | null = null;
  /** Number of bytes from the target to forward before all connections are cut; null if no cut is pending. */
  #answersLeft: number | null = null;
  /** Number of bytes received from the target. */
  answered = 0;
  /** Number of connections so far. */
  joined = 0;

  /**
   * @param target       the port, or returns it
   * @param localAddress address that the target sees
   */
  constructor(target: number | (() => number), localAddress?: string) {
    this.#target = typeof target === 'number' ? () => target : target;
    this.#localAddress = localAddress;
  }

  /** Accepts connections for the target. @returns the port on 127.0.0.1 */
  async listen(): Promise<number> {
    const server = createServer({ pauseOnConnect: true }, async (near) => {
      near.on('error', () => {});
      if (!(await this.join(near))) near.resetAndDestroy();
    });
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as { port: number }).port;
  }

  /**
   * Joins a client's paused socket, which must have an error handler, with a new connection to the target.
   * @param first     bytes to send to the target first
   * @param timeoutMs maximum time to wait while the proxy is cut
   * @returns whether the target accepted
   */
  async join(
    near: Socket,
    { first, timeoutMs = 60_000 }: { first?: Buffer; timeoutMs?: number } = {},
  ): Promise<boolean> {
    this.joined++;
    if (this.#cut === 'silent' && !(await this.#restored(timeoutMs))) return false;
    if (this.#cut !== null || near.destroyed) return false;
    const from = this.#localAddress === undefined ? {} : { localAddress: this.#localAddress };
    const far = connect({ port: this.#target(), host: '127.0.0.1', ...from });
    const accepted = await new Promise<boolean>((resolve) => {
      far.once('connect', () => resolve(true));
      far.on('error', () => resolve(false));
    });
    if (!accepted || near.destroyed || this.#cut === 'reset') {
      far.destroy();
      return false;
    }
    if (first) far.write(first);
    const counted = new Transform({
      transform: (piece: Buffer, _, done) => {
        if (this.#left === null || piece.length <= this.#left) {
          if (this.#left !== null) this.#left -= piece.length;
          return done(null, piece);
        }
        // Closes this side without a reset, so that the target reads all forwarded bytes.
        far.end(piece.subarray(0, this.#left));
        this.#left = null;
        near.resetAndDestroy();
      },
    });
    const pair = { near, counted, far };
    this.#pairs.add(pair);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('close', () => {
        this.#pairs.delete(pair);
        other.destroySoon();
      });
    far.on('data', ({ length }: Buffer) => this.#countAnswer(length));
    if (this.#cut === null) flow(pair);
    else hold(pair);
    return true;
  }

  /** `reset` ends all connections and refuses new ones. `silent` keeps them, but carries no bytes. */
  cut(how: 'reset' | 'silent'): void {
    this.#cut = how;
    if (how === 'reset') this.drop();
    else for (const pair of this.#pairs) hold(pair);
  }

  /** Cuts the connection after `bytes` more bytes from the client. Later connections are not cut. */
  cutAfter(bytes: number): void {
    this.#left = bytes;
  }

  /** Cuts all connections after `bytes` more bytes from the target. Later connections are not cut. */
  cutAnswersAfter(bytes: number): void {
    this.#answersLeft = bytes;
  }

  /** Carries bytes again. */
  restore(): void {
    this.#cut = null;
    for (const pair of this.#pairs) flow(pair);
    for (const resume of this.#held.splice(0)) resume();
  }

  /** Ends all connections. */
  drop(): void {
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  end(): void {
    for (const server of this.#servers) server.close();
    this.cut('reset');
    for (const resume of this.#held.splice(0)) resume();
  }

  #countAnswer(bytes: number): void {
    this.answered += bytes;
    if (this.#answersLeft === null) return;
    this.#answersLeft -= bytes;
    if (this.#answersLeft > 0) return;
    this.#answersLeft = null;
    this.drop();
  }

  async #restored(timeoutMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const restored = await Promise.race([
      new Promise<boolean>((resolve) => this.#held.push(() => resolve(true))),
      new Promise<boolean>((resolve) => {
        timer = setTimeout(resolve, timeoutMs, false);
      }),
    ]);
    clearTimeout(timer);
    return restored;
  }
}

function flow({ near, counted, far }: Pair): void {
  near.pipe(counted).pipe(far);
  far.pipe(near);
}

function hold({ near, counted, far }: Pair): void {
  near.unpipe(counted).pause();
  counted.unpipe(far).pause();
  far.unpipe(near).pause();
}
