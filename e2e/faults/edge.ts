import { connect, createServer, type Server, type Socket } from 'node:net';

/** A connection between two programs that can be cut. Joins sockets of clients with connections to one port on loopback. */
export class Edge {
  readonly #target: () => number;
  readonly #localAddress: string | undefined;
  readonly #pairs = new Set<{ near: Socket; far: Socket }>();
  readonly #servers: Server[] = [];
  #cut: 'reset' | 'silent' | null = null;
  /** Called when the edge carries bytes again. */
  #held: (() => void)[] = [];

  /**
   * @param target       returns the port
   * @param localAddress address that the target sees
   */
  constructor(target: () => number, localAddress?: string) {
    this.#target = target;
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
   * Joins a paused connection of a client, whose errors are handled, with a new one to the target.
   * @param first     bytes to send to the target first
   * @param timeoutMs maximum time to wait while the edge is cut
   * @returns whether the target accepted
   */
  async join(
    near: Socket,
    { first, timeoutMs = 60_000 }: { first?: Buffer; timeoutMs?: number } = {},
  ): Promise<boolean> {
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
    const pair = { near, far };
    this.#pairs.add(pair);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('close', () => {
        this.#pairs.delete(pair);
        other.destroySoon();
      });
    if (this.#cut === null) flow(pair);
    return true;
  }

  /** `reset` ends all connections and refuses new ones. `silent` keeps them, but carries no bytes. */
  cut(how: 'reset' | 'silent'): void {
    this.#cut = how;
    if (how === 'reset') this.drop();
    else for (const pair of this.#pairs) hold(pair);
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

function flow({ near, far }: { near: Socket; far: Socket }): void {
  near.pipe(far);
  far.pipe(near);
}

function hold({ near, far }: { near: Socket; far: Socket }): void {
  near.unpipe(far).pause();
  far.unpipe(near).pause();
}
