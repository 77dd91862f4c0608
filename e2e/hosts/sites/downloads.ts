import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A web server on the bridge of the test hosts, from which the machines download the releases of a program. */
export class Downloads {
  readonly #files = new Map<string, Buffer>();
  readonly #address: string;
  readonly #server: Server;

  private constructor(address: string) {
    this.#address = address;
    this.#server = createServer(({ url = '' }, response) => {
      const content = this.#files.get(url);
      response.writeHead(content === undefined ? 404 : 200, { 'content-length': content?.length ?? 0 });
      response.end(content);
    });
  }

  /** Starts the server. `offer` adds files. */
  static async open(address: string): Promise<Downloads> {
    const downloads = new Downloads(address);
    await new Promise<void>((resolve) => downloads.#server.listen(0, address, resolve));
    downloads.#server.unref();
    return downloads;
  }

  /** URL of the directory with all files, without a trailing slash. */
  get url(): string {
    return `http://${this.#address}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Adds a file. @returns its SHA-256 */
  offer(name: string, content: Buffer): string {
    this.#files.set(`/${name}`, content);
    return createHash('sha256').update(content).digest('hex');
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
