import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { agentExample, nodeExample } from '@muster/protocol/http';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { selfSigned } from '../identity/certificate.ts';
import { bearer, testApp } from './app-fixture.ts';
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

/** Sends bytes as they are, and gives all that comes back until the server ends the connection. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  return text(socket);
}

const limits = { rates: { signIn: { perMinute: 1e6, burst: 1e6 }, sessionPerSecond: 1e6 } };
const agent = `/api/v1/agents/${nodeExample}`;
const headers = bearer('admin');

describe('connections', () => {
  test('what is not HTTP gets a problem, and the connection ends', async () => {
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

  test('a request that trickles in is given up', async () => {
    const { port } = await listening({}, { limits: { ...limits, headersTimeout: 150, requestTimeout: 150 } });
    const answer = await exchange(port, 'GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ');
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
    const body = await exchange(
      port,
      `POST ${agent} HTTP/1.1\r\nhost: x\r\nauthorization: ${headers.authorization}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
    );
    expect(body).toMatch(/^HTTP\/1.1 408 /);
  });

  test('a body that announces too much, without a session, is refused unread', async () => {
    const { port } = await listening();
    const answer = await exchange(
      port,
      `POST ${agent} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n{`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
  });

  test('further connections than allowed are closed', async () => {
    const { port } = await listening({}, { limits: { ...limits, connections: 1 } });
    const first = connect(port, '127.0.0.1');
    await once(first, 'connect');
    const second = connect(port, '127.0.0.1');
    await once(second, 'close');
    first.destroy();
  });

  test('over TLS, HSTS is sent', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = await selfSigned(privateKey, { commonName: 'test', hosts: ['127.0.0.1'], days: 2 });
    const key = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
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

describe('hanging up and stopping', () => {
  test('the signal tells a waiting handler that its client has gone', async () => {
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

  test('an answered request aborts no signal', async () => {
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

  test('stopping tells what waits, refuses what is new, and answers what is under way', async () => {
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
    const begun = connect(port, '127.0.0.1');
    begun.write(request.slice(0, 20));
    app.drain();
    const fresh = await fetch(`http://127.0.0.1:${port}${agent}`, { headers });
    expect(fresh.status).toBe(503);
    expect(fresh.headers.get('retry-after')).toBe('5');
    expect(await fresh.json()).toMatchObject({ code: 'draining' });

    const closed = app.close();
    begun.write(request.slice(20));
    expect(await text(begun)).toMatch(/^HTTP\/1.1 503 [\s\S]*"code":"draining"/);
    proceed.resolve();
    expect(await waiting).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close/i);
    await closed;
  });

  test('an answer that had begun ends whole, and its connection does not hold up the end', async () => {
    const proceed = Promise.withResolvers<void>();
    const { app, port } = await listening({
      listAgents: () =>
        new Chunked(
          (async function* () {
            yield [agentExample];
            yield [agentExample];
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
    expect(JSON.parse(await text(answer))).toHaveLength(3);
    await closed;
    client.destroy();
  });
});
