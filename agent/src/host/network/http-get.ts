import { existsSync, readFileSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { HostFailure } from '../failure.ts';

/** Maximum number of redirects that one request follows. */
const maxRedirects = 10;
/** Maximum time without received data before the request fails, in milliseconds. */
const stallMs = 60_000;

export interface HttpRequest {
  /** An HTTP or HTTPS URL, which may contain a user name and a password. */
  readonly url: string;
  /** Number of bytes to skip. The server may ignore this offset. */
  readonly from: number;
  /**
   * Environment with the proxy variables, such as `https_proxy` and `no_proxy`, and SSL_CERT_FILE, a file with
   * certificate authorities that replaces the machine's own.
   */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  /** Position of the first byte. */
  readonly from: number;
  /** Size of the whole content, or null if the server does not report it. */
  readonly total: number | null;
  readonly body: AsyncIterable<Buffer>;
  /** Closes the connection. */
  close(): void;
}

/** A failure of a request. Its message does not contain the URL, which may be a secret. */
export class HttpFailure extends HostFailure {
  /** Whether the same request may succeed later. */
  readonly mayPass: boolean;

  constructor(message: string, mayPass: boolean) {
    super(message);
    this.mayPass = mayPass;
  }
}

/**
 * Requests content, and follows redirects. Never follows a redirect from HTTPS to HTTP, and sends the user name and
 * password in the URL only to the URL's own origin.
 * @throws HttpFailure
 */
export async function httpGet(request: HttpRequest): Promise<HttpAnswer> {
  const first = urlOf(request.url);
  let url = first;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const response = await answerOf(url, url.origin === first.origin ? first : null, request);
    const { statusCode: status = 0 } = response;
    const { location } = response.headers;
    if (status >= 300 && status < 400 && location !== undefined) {
      response.destroy();
      url = redirected(url, location);
      continue;
    }
    if (status === 200 || (status === 206 && request.from > 0)) return contentOf(response, status, request.from);
    response.destroy();
    // The server has fewer bytes than were already received.
    if (status === 416 && request.from > 0) return httpGet({ ...request, from: 0 });
    const mayPass = status >= 500 || status === 408 || status === 429;
    throw new HttpFailure(`the server answers ${status} ${response.statusMessage ?? ''}`.trim(), mayPass);
  }
  throw new HttpFailure(`the server redirects more than ${maxRedirects} times`, false);
}

function urlOf(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null) throw new HttpFailure('the server redirects to an invalid URL', false);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new HttpFailure(`the scheme ${url.protocol} is neither http nor https`, false);
  return url;
}

/** @throws HttpFailure if the redirect must not be followed */
function redirected(from: URL, location: string): URL {
  const to = urlOf(location, from);
  if (from.protocol === 'https:' && to.protocol !== 'https:')
    throw new HttpFailure(
      `the server redirects from https to http, where anyone on the network path can change the content; use a URL that stays on https`,
      false,
    );
  return to;
}

/** @param credentials URL with the user name and password to send */
function answerOf(url: URL, credentials: URL | null, request: HttpRequest): Promise<IncomingMessage> {
  const user = credentials === null ? '' : `${decoded(credentials.username)}:${decoded(credentials.password)}`;
  return send(url, {
    ...request,
    method: 'GET',
    headers: request.from > 0 ? { range: `bytes=${request.from}-` } : {},
    ...(user.length > 1 ? { auth: user } : {}),
  });
}

export type HttpMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface Sent extends Pick<HttpRequest, 'environment' | 'signal'> {
  readonly method: HttpMethod;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** User name and password, joined by a colon. */
  readonly auth?: string;
}

/** Sends one request, without following redirects. */
function send(url: URL, { method, headers, body, auth, environment, signal }: Sent): Promise<IncomingMessage> {
  const authorities = url.protocol === 'https:' ? authoritiesOf(environment) : undefined;
  const { request, Agent } = url.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        ...{ protocol: url.protocol, hostname: url.hostname.replace(/^\[|\]$/g, ''), port: url.port },
        ...{ path: `${url.pathname}${url.search}`, method, signal, timeout: stallMs },
        agent: new Agent({ keepAlive: false, proxyEnv: { ...environment } }),
        headers: { 'accept-encoding': 'identity', 'user-agent': 'muster-agent', ...headers },
        ...(auth === undefined ? {} : { auth }),
        ...(authorities === undefined ? {} : { ca: authorities }),
      },
      resolve,
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error(`nothing arrived for ${stallMs / 1000} s`)));
    outgoing.on('error', (error) => reject(failed(error)));
    outgoing.end(body);
  });
}

/** A request whose whole response fits in memory. */
export interface HttpCall extends Omit<Sent, 'auth'> {
  readonly url: string;
  /** Maximum size of the response, in bytes. */
  readonly limit: number;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/**
 * Sends a request, and returns the response regardless of its status. Does not follow redirects.
 * @throws HttpFailure if there is no response, or if it exceeds `limit` bytes
 */
export async function httpCall(call: HttpCall): Promise<HttpReply> {
  const response = await send(urlOf(call.url), call);
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of bytesOf(response)) {
      length += piece.length;
      if (length > call.limit) throw new HttpFailure(`the answer is larger than ${call.limit} bytes`, false);
      pieces.push(piece);
    }
  } finally {
    response.destroy();
  }
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(pieces) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns a connection failure. Node's errors contain at most the address. */
function failed(error: Error & { code?: string }): HttpFailure {
  const isUntrusted = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(error.code ?? '');
  return new HttpFailure(
    isUntrusted
      ? `the certificate of the server is not valid here: ${error.message}`
      : error.message || `${error.code}`,
    !isUntrusted,
  );
}

function contentOf(response: IncomingMessage, status: number, wanted: number): HttpAnswer {
  const { 'content-range': range, 'content-length': length } = response.headers;
  const [, start, end] = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(range ?? '') ?? [];
  if (status === 206 && Number(start) !== wanted) {
    response.destroy();
    throw new HttpFailure('the server returned a different range than requested', false);
  }
  const from = status === 206 ? wanted : 0;
  const rest = /^\d{1,15}$/.test(length ?? '') ? Number(length) : null;
  const total = end !== undefined && end !== '*' ? Number(end) : rest === null ? null : from + rest;
  return { from, total, body: bytesOf(response), close: () => response.destroy() };
}

async function* bytesOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const piece of response) yield piece as Buffer;
  } catch (error) {
    throw failed(error as Error);
  }
}

/**
 * Files with the machine's certificate authorities: for Debian and its derivatives, then for Fedora and its
 * derivatives.
 */
const authorityFiles = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt'];

/** Returns this machine's certificate authorities in PEM, or undefined to use Node's. */
function authoritiesOf({ SSL_CERT_FILE }: HttpRequest['environment']): string | undefined {
  const path = SSL_CERT_FILE || authorityFiles.find((file) => existsSync(file));
  return path === undefined ? undefined : readFileSync(path, 'utf8');
}
