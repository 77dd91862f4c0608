import { connect, createServer, type Socket } from 'node:net';

/** A TCP proxy that can break a connection between two programs after a given number of bytes. */
export class CuttingProxy {
  readonly #server = createServer((near) => this.#join(near));
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  /** Number of bytes from clients to forward before the cut; null if no cut is pending. */
  #left: number | null = null;
  /** Number of bytes from the target to forward before all connections are cut; null if no cut is pending. */
  #answersLeft: number | null = null;
  /** Number of bytes forwarded from the target to clients. */
  answered = 0;
  /** Number of connections so far. */
  joined = 0;

  /** @param target port on 127.0.0.1 */
  constructor(target: number) {
    this.#target = target;
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as { port: number }).port;
  }

  /** Cuts the connection after `bytes` more bytes from the client. Later connections are not cut. */
  cutAfter(bytes: number): void {
    this.#left = bytes;
  }

  /** Cuts all connections after `bytes` more bytes from the target. Later connections are not cut. */
  cutAnswersAfter(bytes: number): void {
    this.#answersLeft = bytes;
  }

  end(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(near: Socket): void {
    const far = connect(this.#target, '127.0.0.1');
    const cut = () => {
      near.resetAndDestroy();
      far.resetAndDestroy();
    };
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on('error', cut);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        cut();
      });
    }
    this.joined++;
    far.on('data', ({ length }: Buffer) => {
      this.answered += length;
      if (this.#answersLeft === null) return;
      this.#answersLeft -= length;
      if (this.#answersLeft > 0) return;
      this.#answersLeft = null;
      for (const socket of this.#sockets) socket.resetAndDestroy();
    });
    far.pipe(near);
    near.on('data', (piece: Buffer) => {
      if (this.#left !== null && piece.length > this.#left) {
        const last = piece.subarray(0, this.#left);
        this.#left = null;
        // Closes this side without a reset, so that the target reads all forwarded bytes.
        far.end(last);
        near.resetAndDestroy();
        return;
      }
      if (this.#left !== null) this.#left -= piece.length;
      if (far.write(piece)) return;
      near.pause();
      far.once('drain', () => near.resume());
    });
  }
}
