import { connect, createServer, type Socket } from 'node:net';

/** A TCP balancer on 127.0.0.1. It forwards each connection to the next target in rotation that accepts connections. */
export class TcpBalancer {
  readonly #server = createServer((near) => this.#join(near, this.#targets.length));
  readonly #targets: readonly number[];
  readonly #sockets = new Set<Socket>();
  #next = 0;

  /** @param targets ports on 127.0.0.1 */
  constructor(targets: readonly number[]) {
    this.#targets = targets;
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as { port: number }).port;
  }

  end(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** @param left number of targets to try */
  #join(near: Socket, left: number): void {
    const far = connect(this.#targets[this.#next++ % this.#targets.length]!, '127.0.0.1');
    near.on('error', () => far.destroy());
    far.once('error', () => {
      if (left > 1) this.#join(near, left - 1);
      else near.destroy();
    });
    far.once('connect', () => {
      far.on('error', () => near.destroy());
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
  }
}
