import { createPublicKey, randomBytes, verify as verifySignature } from 'node:crypto';
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { type ErrorCode, errorKinds } from '@muster/protocol';
import { apiPrefix, type Route, routes } from '@muster/protocol/http';
import { signInBytes } from '@muster/protocol/sign-in';
import { type WebSocket, WebSocketServer } from 'ws';

/** A received request. */
export interface Seen {
  route: Route;
  params: Record<string, string>;
  query: Record<string, string>;
  body: unknown;
  headers: IncomingMessage['headers'];
}

export type Answer =
  /** `next` is the address of the next page, for the `Link` header. */
  | { status?: number; body: unknown; next?: string }
  /** A body that is not JSON. */
  | { text: string }
  /** The first part of a response, after which the server closes the connection. */
  | { cut: string }
  | { code: ErrorCode; detail: string; errors?: unknown[] };

export interface Standing {
  url: string;
  /** All received requests, in order. */
  seen: Seen[];
  /** Returns the number of TCP connections that were opened. */
  connections: () => number;
  /** Revokes every sign-in session, as a restart of the orchestrator does. */
  forgetSessions(): void;
  close(): Promise<void>;
}

interface StandInOptions {
  tls?: { key: string; cert: string };
  answers?: Record<string, (seen: Seen) => Answer | undefined>;
  /** Port; by default, any free port. */
  port?: number;
  /** Lifetime of a sign-in session in seconds. */
  tokenLife?: number;
  /** Called with each WebSocket and its request path. */
  webSocket?: (socket: WebSocket, path: string) => void;
}

/**
 * Starts a server that returns the example of every route in the table, validates requests with their schemas, and
 * verifies sign-ins. `answers` overrides the examples by route ID.
 */
export async function standIn(options: StandInOptions = {}): Promise<Standing> {
  const seen: Seen[] = [];
  const signIn = new SignIn(options.tokenLife ?? 3600);

  const answer = (request: Seen): Answer => {
    const { route } = request;
    if (route.access !== 'anyone' && !signIn.isSignedIn(request))
      return { code: 'unauthenticated', detail: 'no live session' };
    return (
      schemaFault(request) ??
      options.answers?.[route.id]?.(request) ??
      signIn.answers[route.id]?.(request) ?? { body: route.example.answer }
    );
  };
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const request = await requestOf(incoming);
    if (request === null)
      return send(response, { code: 'route_not_found', detail: new URL(incoming.url ?? '', 'http://x').pathname });
    seen.push(request);
    send(response, answer(request));
  };

  const server = options.tls ? createSecureServer(options.tls, handle) : createPlainServer(handle);
  const { webSocket } = options;
  if (webSocket !== undefined) {
    const upgrading = new WebSocketServer({ noServer: true });
    server.on('upgrade', (request, socket, head) =>
      upgrading.handleUpgrade(request, socket, head, (opened) => webSocket(opened, request.url ?? '')),
    );
  }
  let opened = 0;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    opened++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    seen,
    connections: () => opened,
    forgetSessions: () => signIn.forget(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Handles the sign-in routes: verifies signatures and issues session tokens for any key. */
class SignIn {
  readonly #tokenLife: number;
  readonly #nonces = new Map<string, string>();
  readonly #tokens = new Set<string>();

  /** @param tokenLife seconds */
  constructor(tokenLife: number) {
    this.#tokenLife = tokenLife;
  }

  /** Responses from the sign-in routes, by route id. */
  readonly answers: Readonly<Record<string, (request: Seen) => Answer>> = {
    challenge: ({ body }) => {
      const nonce = randomBytes(32).toString('hex');
      this.#nonces.set((body as { public_key: string }).public_key, nonce);
      return { body: { nonce, form: 2 } };
    },
    verify: ({ body }) => {
      const { public_key, signature, server } = body as { public_key: string; signature: string; server: string };
      const x = Buffer.from(public_key, 'hex').toString('base64url');
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      const nonce = this.#nonces.get(public_key) ?? '0'.repeat(64);
      this.#nonces.delete(public_key);
      const signed = signInBytes({ server, publicKey: public_key, nonce });
      return verifySignature(null, signed, key, Buffer.from(signature, 'hex'))
        ? this.#issue()
        : { code: 'signature_invalid', detail: 'the signature does not verify' };
    },
    renew: (request) => {
      this.#tokens.delete(tokenOf(request));
      return this.#issue();
    },
  };

  isSignedIn(request: Seen): boolean {
    return this.#tokens.has(tokenOf(request));
  }

  /** Revokes every sign-in session. */
  forget(): void {
    this.#tokens.clear();
  }

  #issue(): Answer {
    const token = randomBytes(32).toString('base64url');
    this.#tokens.add(token);
    return { body: { token, expires_at: Math.floor(Date.now() / 1000) + this.#tokenLife } };
  }
}

const tokenOf = ({ headers }: Seen): string => String(headers.authorization).slice('Bearer '.length);

/**
 * Reads a request with its body.
 * @returns null if the route does not exist
 */
async function requestOf(incoming: IncomingMessage): Promise<Seen | null> {
  const url = new URL(incoming.url ?? '', 'http://x');
  let text = '';
  for await (const piece of incoming) text += piece;
  const found = match(incoming.method ?? '', url.pathname);
  if (found === null) return null;
  return {
    ...found,
    query: Object.fromEntries(url.searchParams),
    body: text === '' ? undefined : JSON.parse(text),
    headers: incoming.headers,
  };
}

/** Returns the refusal for a query or a body that does not match the route's schema. */
function schemaFault(request: Seen): Answer | undefined {
  const { route } = request;
  for (const part of ['query', 'body'] as const) {
    const value = part === 'body' && route.bodyOptional ? (request.body ?? {}) : request[part];
    const checked = route[part]?.safeParse(value);
    if (checked && !checked.success) return { code: 'invalid_input', detail: `${route.id}: ${checked.error.message}` };
  }
  return undefined;
}

function send(response: ServerResponse, answer: Answer): void {
  const reply = (status: number, body: unknown) => {
    response.writeHead(body === undefined ? 204 : status, { 'content-type': 'application/json' });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  };
  if ('code' in answer) {
    const { code, detail, errors } = answer;
    const { status, title } = errorKinds[code];
    const type = `about:${code}`;
    reply(status, { type, title, status, detail, instance: 'test', code, ...(errors ? { errors } : {}) });
  } else if ('text' in answer) response.end(answer.text);
  else if ('cut' in answer) response.write(answer.cut, () => response.destroy());
  else {
    if (answer.next !== undefined) response.setHeader('link', `<${answer.next}>; rel="next"`);
    reply(answer.status ?? 200, answer.body);
  }
}

function match(method: string, path: string): Pick<Seen, 'route' | 'params'> | null {
  for (const route of routes) {
    if (route.method !== method) continue;
    const names: string[] = [];
    const shape = (apiPrefix + route.path).replace(/\{(\w+)\}/g, (_, name: string) => {
      names.push(name);
      return '([^/]+)';
    });
    const values = new RegExp(`^${shape}$`).exec(path);
    if (values) {
      const params = names.map((name, at) => [name, decodeURIComponent(values[at + 1] ?? '')] as const);
      return { route, params: Object.fromEntries(params) };
    }
  }
  return null;
}
