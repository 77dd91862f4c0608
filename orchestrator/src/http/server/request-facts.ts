import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestFacts } from './handlers.ts';

export class Facts implements RequestFacts {
  readonly id: string;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #draining: AbortSignal;
  #signal: AbortSignal | null = null;

  constructor(request: FastifyRequest, reply: FastifyReply, draining: AbortSignal) {
    this.id = request.id;
    this.#request = request;
    this.#reply = reply;
    this.#draining = draining;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  get userAgent(): string | undefined {
    return this.#request.headers['user-agent'];
  }

  get ip(): string {
    return this.#request.ip;
  }

  get origin(): string | null {
    // Accepts only a host and an optional port, because the Host header is untrusted.
    const { host } = this.#request;
    return /^([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?$/.test(host) ? `${this.#request.protocol}://${host}` : null;
  }

  get secure(): boolean {
    return this.#request.protocol === 'https';
  }

  get loopback(): boolean {
    const { socket, ip, ips, headers } = this.#request;
    if (!isLoopback(socket.remoteAddress) || !isLoopback(ip)) return false;
    // Trusted proxies must report a local client address. Without trusted proxies, any forwarding header reveals an
    // undeclared proxy.
    return (ips?.length ?? 0) > 1 || !forwardingHeaders.some((name) => headers[name] !== undefined);
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#watch();
    return this.#signal;
  }

  #watch(): AbortSignal {
    const controller = new AbortController();
    const abort = () => controller.abort();
    const { raw } = this.#reply;
    if (this.#draining.aborted || raw.destroyed) abort();
    this.#draining.addEventListener('abort', abort);
    // `close` follows every response. If the response is incomplete, the client has disconnected.
    raw.once('close', () => {
      this.#draining.removeEventListener('abort', abort);
      if (!raw.writableFinished) abort();
    });
    return controller.signal;
  }
}

const forwardingHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip'];

const isLoopback = (address: string | undefined): boolean =>
  address !== undefined && (address === '::1' || /^(::ffff:)?127\./i.test(address));
