import { createHash } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import type { Duplex } from 'node:stream';

/** Responds to one request. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export const sha256Of = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

/** A server that listens on loopback, serves content, and supports range requests. */
export class ContentServer {
  /** Content by path. */
  readonly contents = new Map<string, Buffer>();
  /** Response handlers by path, used instead of content. */
  readonly answers = new Map<string, Answer>();
  /** Requests so far, each as its path and requested range. */
  readonly requests: string[] = [];
  /** Closes the connection after this many bytes of the body, once for each number. */
  cuts: number[] = [];
  readonly #server: Server;
  /** Connections that became tunnels, which the server no longer tracks. */
  readonly #tunnels: { destroy(): void }[] = [];
  readonly #scheme: string;

  private constructor(identity: { key: string; cert: string } | null) {
    const answer = (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response);
    this.#server = identity === null ? http.createServer(answer) : https.createServer(identity, answer);
    this.#scheme = identity === null ? 'http' : 'https';
    if (identity === null) this.#server.on('connect', (request, socket) => this.#tunnel(request, socket));
  }

  /** @param identity a key and a certificate in PEM for HTTPS */
  static async open(identity: { key: string; cert: string } | null = null): Promise<ContentServer> {
    const server = new ContentServer(identity);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path: string, host = '127.0.0.1'): string {
    return `${this.#scheme}://${host}:${this.port}${path}`;
  }

  /** Serves content. @returns its URL and hash */
  serve(path: string, content: Buffer | string): { url: string; sha256: string } {
    const bytes = Buffer.from(content as string);
    this.contents.set(path, bytes);
    return { url: this.url(path), sha256: sha256Of(bytes) };
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? '';
    const { range } = request.headers;
    this.requests.push(range === undefined ? path : `${path} ${range}`);
    const answer = this.answers.get(path);
    const content = this.contents.get(path);
    if (answer !== undefined) answer(request, response);
    else if (content === undefined) response.writeHead(404).end();
    else this.#send(content, Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0), response);
  }

  #send(content: Buffer, from: number, response: ServerResponse): void {
    if (from >= content.length && from > 0) {
      response.writeHead(416).end();
      return;
    }
    const part = content.subarray(from);
    const headers = { 'content-length': part.length, 'accept-ranges': 'bytes' };
    if (from === 0) response.writeHead(200, headers);
    else
      response.writeHead(206, {
        ...headers,
        'content-range': `bytes ${from}-${content.length - 1}/${content.length}`,
      });
    const cut = this.cuts.shift();
    if (cut === undefined) response.end(part);
    else {
      response.flushHeaders();
      if (cut > 0) response.write(part.subarray(0, cut));
      setTimeout(() => response.destroy(), 10);
    }
  }

  /** Acts as a proxy for HTTPS. */
  #tunnel(request: IncomingMessage, socket: Duplex): void {
    this.requests.push(`CONNECT ${request.url}`);
    const [host = '', port] = (request.url ?? '').split(':');
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(target).pipe(socket);
    });
    this.#tunnels.push(socket, target);
    for (const end of [socket, target]) end.on('error', () => target.destroy());
  }

  close(): Promise<void> {
    for (const tunnel of this.#tunnels) tunnel.destroy();
    if (this.#server instanceof http.Server || this.#server instanceof https.Server) this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
