import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { keepingLog, testApp } from '../../test/app-fixture.ts';
import { headerOf, localHeader } from '../../test/proxy-header.ts';
import { selfSigned } from '../identity/certificate.ts';
import { acceptedClient } from './proxied-connections.ts';

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

async function certificate(): Promise<{ cert: string; key: string }> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = await selfSigned(privateKey, { commonName: 'test', hosts: ['127.0.0.1'], days: 2 });
  return { cert, key: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string };
}

/** 127.0.0.2 is the balancer. */
async function start(scheme: 'http' | 'https', proxyNetworks = ['127.0.0.2']) {
  const { log, lines } = keepingLog();
  const clock = new ManualClock();
  const tls = scheme === 'https' ? { tls: await certificate() } : {};
  const app = testApp({}, { proxyNetworks, log, clock, ...tls });
  apps.push(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const dial = (localAddress: string) => connect({ host: '127.0.0.1', port, localAddress });
  const requestOver = (socket: Socket) => {
    const over = scheme === 'https' ? connectTls({ socket, rejectUnauthorized: false }) : socket;
    over.on('error', () => {});
    over.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    return text(over).catch((error: Error) => error.message);
  };
  const askFrom = async (localAddress: string, header: Buffer = Buffer.alloc(0)) => {
    const socket = dial(localAddress);
    socket.write(header);
    return await requestOver(socket);
  };
  const addresses = () => lines.flatMap((line) => (line.msg === 'request' ? [line.ip] : []));
  const refusals = () => lines.filter((line) => String(line.msg).startsWith('refused connections'));
  return { app, clock, lines, dial, requestOver, askFrom, addresses, refusals };
}

describe.each(['http', 'https'] as const)('over %s', (scheme) => {
  test('takes the client’s address from the header', async () => {
    const { askFrom, addresses } = await start(scheme);
    expect(await askFrom('127.0.0.2', headerOf('203.0.113.7', 999))).toMatch(/^HTTP\/1.1 200 /);
    expect(await askFrom('127.0.0.2', headerOf('2001:db8::7', 999, Buffer.alloc(100)))).toMatch(/^HTTP\/1.1 200 /);
    expect(addresses()).toEqual(['203.0.113.7', '2001:db8::7']);
  });

  test('reads a header that arrives byte by byte, and leaves the rest to the server', async () => {
    const { dial, requestOver, addresses } = await start(scheme);
    const socket = dial('127.0.0.2');
    socket.setNoDelay(true);
    for (const byte of headerOf('203.0.113.7', 999)) {
      socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(await requestOver(socket)).toMatch(/^HTTP\/1.1 200 /);
    expect(addresses()).toEqual(['203.0.113.7']);
  });

  test('uses the balancer’s own address for its health checks', async () => {
    const { askFrom, addresses } = await start(scheme);
    expect(await askFrom('127.0.0.2', localHeader())).toMatch(/^HTTP\/1.1 200 /);
    expect(addresses()).toEqual(['127.0.0.2']);
  });

  test('refuses a connection from the balancer without a header, and logs the reason once a minute', async () => {
    const { askFrom, addresses, refusals, clock } = await start(scheme);
    for (let i = 0; i < 3; i++) expect(await askFrom('127.0.0.2')).not.toContain('HTTP/1.1');
    expect(addresses()).toEqual([]);
    expect(refusals()).toMatchObject([
      { level: 40, remote_ip: '127.0.0.2', refused: 1, reason: expect.stringMatching(/does not begin with a header/) },
    ]);
    clock.advance(60_000);
    await askFrom('127.0.0.2');
    expect(refusals()).toMatchObject([{}, { refused: 3 }]);
  });

  test('accepts other addresses without a header, and refuses a header from them', async () => {
    const { askFrom, addresses } = await start(scheme);
    expect(await askFrom('127.0.0.1')).toMatch(/^HTTP\/1.1 200 /);
    expect(await askFrom('127.0.0.1', headerOf('203.0.113.7', 999))).not.toMatch(/^HTTP\/1.1 200 /);
    expect(addresses()).not.toContain('203.0.113.7');
  });

  test('closes a connection whose header does not arrive in time', async () => {
    const { dial, clock, refusals } = await start(scheme);
    const socket = dial('127.0.0.2');
    socket.on('error', () => {});
    socket.write(headerOf('203.0.113.7', 999).subarray(0, 20));
    const closed = once(socket, 'close');
    // The server has no timer for a connection that it has not accepted yet.
    const advance = setInterval(() => clock.advance(500), 5);
    await closed;
    clearInterval(advance);
    expect(refusals()).toMatchObject([{ reason: expect.stringMatching(/no header arrived within 5 s/) }]);
  });

  test('stops while it waits for a header', async () => {
    const { app, dial, askFrom } = await start(scheme);
    const socket = dial('127.0.0.2');
    socket.on('error', () => {});
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    // The server accepts connections in order.
    await askFrom('127.0.0.1');
    await app.close();
    await closed;
  });
});

test('ignores a loopback client address that a balancer on another machine states', () => {
  const stated = (address: string, balancer: string) => acceptedClient({ address, port: 9 }, balancer)?.address;
  for (const address of ['127.0.0.1', '127.1.2.3', '::1']) {
    expect(stated(address, '192.0.2.1')).toBeUndefined();
    expect(stated(address, '127.0.0.2')).toBe(address);
  }
  expect(stated('203.0.113.7', '127.0.0.2')).toBe('203.0.113.7');
});
