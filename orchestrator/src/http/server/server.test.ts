import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { agentExample, nodeExample } from '@muster/protocol/http';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { bearer, keepingLog, testApp } from '../../../test/app-fixture.ts';
import { selfSigned } from '../../identity/certificate.ts';
import { type CallOf, Chunked } from './handlers.ts';

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

async function listening(...options: Parameters<typeof testApp>): Promise<{ app: FastifyInstance; port: number }> {
  const app = testApp(...options);
  apps.push(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, port: (app.server.address() as AddressInfo).port };
}

/**
 * Sends raw bytes.
 * @returns all data received until the server closes the connection
 */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  return text(socket);
}

async function certificate(): Promise<{ cert: string; key: string }> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = await selfSigned(privateKey, { commonName: 'test', hosts: ['127.0.0.1'], days: 2 });
  return { cert, key: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string };
}

interface SentRequest {
  port: number;
  path: string;
  scheme?: 'http' | 'https';
  localAddress?: string;
  headers?: Record<string, string>;
  agent?: HttpAgent;
  onSocket?: (reused: boolean) => void;
}

/** Sends a GET. @returns the status of the response */
async function answered({ scheme = 'http', agent, onSocket, ...options }: SentRequest): Promise<number> {
  const request = scheme === 'http' ? httpRequest : httpsRequest;
  const sent = request({ host: '127.0.0.1', ...options, agent: agent ?? false, rejectUnauthorized: false });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  onSocket?.(sent.reusedSocket);
  answer.resume();
  await once(answer, 'close');
  return answer.statusCode ?? 0;
}

const limits = { rates: { signIn: { perMinute: 1e6, burst: 1e6 }, sessionPerSecond: 1e6 } };
const agent = `/api/v1/agents/${nodeExample}`;
const headers = bearer('admin');

describe('connections', () => {
  test('responds with a problem document to data that is not HTTP, and closes the connection', async () => {
    const { port } = await listening();
    for (const [bytes, status, code] of [
      ['nonsense\r\n\r\n', 400, 'malformed_request'],
      [
        'GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
        400,
        'malformed_request',
      ],
      [`GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ] as const) {
      const answer = await exchange(port, bytes);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ status, code });
    }
  });

  test('times out a request that arrives too slowly', async () => {
    const { port } = await listening({}, { limits: { ...limits, headersTimeout: 150, requestTimeout: 150 } });
    const answer = await exchange(port, 'GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ');
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
    const body = await exchange(
      port,
      `POST ${agent} HTTP/1.1\r\nhost: x\r\nauthorization: ${headers.authorization}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
    );
    expect(body).toMatch(/^HTTP\/1.1 408 /);
  });

  test('returns 401 for an oversized body without a session, without reading the body', async () => {
    const { port } = await listening();
    const answer = await exchange(
      port,
      `POST ${agent} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n{`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
  });

  test('drops the oldest connection without a request when the maximum number of connections is reached', async () => {
    const { app, port } = await listening({}, { limits: { ...limits, connections: 1 } });
    const first = connect(port, '127.0.0.1');
    await once(first, 'connect');
    const second = connect(port, '127.0.0.1');
    await once(first, 'close');
    expect(app.connections.stats).toEqual({ open: 1, dropped: { share: 0, full: 1 } });
    second.destroy();
  });

  test('refuses connections above the maximum while all open connections are signed in', async () => {
    const { app, port } = await listening({}, { limits: { ...limits, connections: 1 } });
    const client = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    await answered({ port, agent: client, path: agent, headers });
    const second = connect(port, '127.0.0.1');
    await once(second, 'close');
    await answered({ port, agent: client, path: agent, headers });
    expect(app.connections.stats).toEqual({ open: 1, dropped: { share: 0, full: 1 } });
    client.destroy();
  });

  describe.each(['http', 'https'] as const)('over %s', (scheme) => {
    const start = async (options: { connections: number; connectionsOfNetwork: number }, proxies: string[] = []) => {
      const { log, lines } = keepingLog();
      const tls = scheme === 'https' ? { tls: await certificate() } : {};
      const { app, port } = await listening(
        {},
        { limits: { ...limits, ...options }, trustedProxies: proxies, log, ...tls },
      );
      return { app, port, lines };
    };
    const ask = (port: number, localAddress: string, more: Partial<SentRequest> = {}) =>
      answered({ port, localAddress, path: '/healthz', scheme, ...more });
    const silent = async (port: number, count: number, localAddress: string) => {
      const sockets = Array.from({ length: count }, () => connect({ port, host: '127.0.0.1', localAddress }));
      const closed = new Set<number>();
      for (const [at, socket] of sockets.entries()) {
        socket.on('error', () => {});
        socket.once('close', () => closed.add(at));
      }
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
      return { closed, end: () => sockets.forEach((socket) => void socket.destroy()) };
    };

    test('serves one address while another holds the maximum number of silent connections', async () => {
      const { app, port, lines } = await start({ connections: 40, connectionsOfNetwork: 10 });
      const hostile = await silent(port, 60, '127.0.0.2');
      expect(await ask(port, '127.0.0.1')).toBe(200);
      await expect.poll(() => hostile.closed.size).toBe(50);
      expect(Math.max(...hostile.closed)).toBe(49);
      expect(app.connections.stats.dropped).toEqual({ share: 50, full: 0 });
      const warnings = lines.filter(({ msg }) => String(msg).startsWith('dropped API connections'));
      expect(warnings).toMatchObject([{ dropped: 1, newest_from: '127.0.0.2' }]);
      hostile.end();
    });

    test('serves a new address even if many addresses hold all connections', async () => {
      const { app, port } = await start({ connections: 40, connectionsOfNetwork: 10 });
      const hostile = await Promise.all([2, 3, 4, 5, 6].map((at) => silent(port, 10, `127.0.0.${at}`)));
      expect(await ask(port, '127.0.0.1')).toBe(200);
      expect(app.connections.stats.dropped.full).toBeGreaterThanOrEqual(11);
      for (const one of hostile) one.end();
    });

    test('serves a slow client while busy networks reconnect repeatedly', async () => {
      const { app, port } = await start({ connections: 8, connectionsOfNetwork: 4 });
      const addresses = ['127.0.0.2', '127.0.0.3'];
      const open = (localAddress: string) => {
        const socket = connect({ port, host: '127.0.0.1', localAddress });
        const connection = scheme === 'http' ? socket : connectTls({ socket, rejectUnauthorized: false });
        return connection.on('error', () => {});
      };
      const bodyHeldBack =
        'POST /api/v1/auth/challenge HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{';
      const busy = addresses.flatMap((address) => Array.from({ length: 4 }, () => open(address)));
      for (const socket of busy) socket.write(bodyHeldBack);
      let requests = 0;
      app.server.on('request', () => requests++);
      await expect.poll(() => requests).toBe(8);
      const client = open('127.0.0.1');
      await once(client, scheme === 'http' ? 'connect' : 'secureConnect');
      const again = await Promise.all(addresses.map((address) => silent(port, 4, address)));
      await expect.poll(() => again.reduce((sum, { closed }) => sum + closed.size, 0)).toBe(8);
      const answer = text(client);
      client.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
      expect(await answer).toMatch(/^HTTP\/1.1 200 /);
      for (const socket of busy) socket.destroy();
      for (const one of again) one.end();
    });

    test('keeps a signed-in connection while its address opens many more connections', async () => {
      const { port } = await start({ connections: 40, connectionsOfNetwork: 3 });
      const client =
        scheme === 'http'
          ? new HttpAgent({ keepAlive: true, maxSockets: 1 })
          : new HttpsAgent({ keepAlive: true, maxSockets: 1 });
      let connections = 0;
      const own = () =>
        ask(port, '127.0.0.1', {
          agent: client,
          path: agent,
          headers,
          onSocket: (reused) => (connections += reused ? 0 : 1),
        });
      expect(await own()).toBe(200);
      const others = await silent(port, 30, '127.0.0.1');
      await expect.poll(() => others.closed.size).toBe(27);
      expect(await own()).toBe(200);
      expect(connections).toBe(1);
      others.end();
      client.destroy();
    });

    test('exempts a trusted proxy from the per-network limit', async () => {
      const { app, port } = await start({ connections: 40, connectionsOfNetwork: 3 }, ['127.0.0.8/30']);
      const proxy = await silent(port, 30, '127.0.0.9');
      expect(await ask(port, '127.0.0.10')).toBe(200);
      expect(proxy.closed.size).toBe(0);
      expect(app.connections.stats.dropped).toEqual({ share: 0, full: 0 });
      proxy.end();
    });
  });

  test('aborts a TLS handshake that exceeds its time limit', async () => {
    const { port } = await listening({}, { limits: { ...limits, handshakeTimeout: 150 }, tls: await certificate() });
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'close');
  });

  test('shuts down without waiting for a TLS handshake', async () => {
    const { app, port } = await listening({}, { tls: await certificate() });
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    await expect.poll(() => app.connections.stats.open).toBe(1);
    const closed = once(socket, 'close');
    await app.close();
    await closed;
  });

  test('sends HSTS over TLS', async () => {
    const { cert, key } = await certificate();
    let secure: boolean | undefined;
    const { port } = await listening(
      {
        getAgent: ({ request }) => {
          secure = request.secure;
          return agentExample;
        },
      },
      { tls: { cert, key } },
    );
    const sent = httpsRequest({ host: '127.0.0.1', port, path: agent, headers, ca: cert, agent: false });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['strict-transport-security']).toBe('max-age=31536000');
    expect(secure).toBe(true);
    answer.resume();
    await once(answer, 'close');
  });
});

describe('disconnects and shutdown', () => {
  test('aborts the signal of a waiting handler when its client disconnects', async () => {
    const arrived = Promise.withResolvers<CallOf<'applyAgent'>>();
    const { port } = await listening({
      applyAgent: (call) => {
        arrived.resolve(call);
        return new Promise(() => {});
      },
    });
    const client = httpRequest({ host: '127.0.0.1', port, path: `${agent}/apply`, method: 'POST', headers });
    client.on('error', () => {});
    client.setHeader('content-type', 'application/json');
    client.end('{"modules":[]}');
    const { signal } = (await arrived.promise).request;
    expect(signal.aborted).toBe(false);
    client.destroy();
    await once(signal, 'abort');
  });

  test('does not abort the signal of a request after its response', async () => {
    let signal: AbortSignal | undefined;
    const { port } = await listening({
      getAgent: async ({ request }) => {
        signal = request.signal;
        return agentExample;
      },
    });
    const client = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    for (let at = 0; at < 2; at++) {
      const sent = httpRequest({ agent: client, host: '127.0.0.1', port, path: agent, headers });
      sent.end();
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      answer.resume();
      await once(answer, 'close');
    }
    expect(signal?.aborted).toBe(false);
    client.destroy();
  });

  test('notifies waiting handlers, refuses new requests, and completes responses in progress on shutdown', async () => {
    const arrived = Promise.withResolvers<void>();
    const proceed = Promise.withResolvers<void>();
    const { app, port } = await listening({
      getAgent: async ({ request: { signal } }) => {
        arrived.resolve();
        await Promise.all([once(signal, 'abort'), proceed.promise]);
        return agentExample;
      },
    });
    const request = `GET ${agent} HTTP/1.1\r\nhost: x\r\nauthorization: ${headers.authorization}\r\n\r\n`;
    const waiting = exchange(port, request);
    await arrived.promise;
    const started = connect(port, '127.0.0.1');
    started.write(request.slice(0, 20));
    app.drain();
    const fresh = await fetch(`http://127.0.0.1:${port}${agent}`, { headers });
    expect(fresh.status).toBe(503);
    expect(fresh.headers.get('retry-after')).toBe('5');
    expect(await fresh.json()).toMatchObject({ code: 'draining' });

    const closed = app.close();
    started.write(request.slice(20));
    expect(await text(started)).toMatch(/^HTTP\/1.1 503 [\s\S]*"code":"draining"/);
    proceed.resolve();
    expect(await waiting).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close/i);
    await closed;
  });

  test('completes a response in progress on shutdown without waiting for its connection to become idle', async () => {
    const proceed = Promise.withResolvers<void>();
    // Large enough to be sent in chunks.
    const started = Array.from({ length: 1_000 }, () => agentExample);
    const { app, port } = await listening({
      listAgents: () =>
        new Chunked(
          (async function* () {
            yield started;
            await proceed.promise;
            yield [agentExample];
          })(),
        ),
    });
    const client = new HttpAgent({ keepAlive: true });
    const sent = httpRequest({ agent: client, host: '127.0.0.1', port, path: '/api/v1/agents', headers });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const closed = app.close();
    proceed.resolve();
    expect(JSON.parse(await text(answer))).toHaveLength(started.length + 1);
    await closed;
    client.destroy();
  });
});
