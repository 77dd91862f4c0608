import type { lookup } from 'node:dns';
import type { AddressInfo } from 'node:net';
import { createServer as createTcp } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type FarEnd, farEnd } from '../../test/far-end.ts';
import { guardedLookup, retryAfter, send } from './send.ts';

const ends: FarEnd[] = [];
const far = async (...of: Parameters<typeof farEnd>) => {
  const end = await farEnd(...of);
  ends.push(end);
  return end;
};
afterEach(async () => {
  for (const end of ends.splice(0)) await end.close();
});

const post = (url: string) => ({ url, headers: { 'content-type': 'application/json' }, body: '{"a":"ä"}' });
const open = { timeoutMs: 2_000, denyPrivate: false };

describe('send', () => {
  test('sends the whole body and returns the status', async () => {
    const end = await far(204);
    expect(await send(post(`${end.url}?x=1`), open)).toEqual({ status: 204, retryAfterMs: null });
    expect(end.arrived).toMatchObject([{ method: 'POST', path: '/hook?x=1', body: '{"a":"ä"}' }]);
    expect(end.arrived[0]?.headers).toMatchObject({ 'content-length': '10', connection: 'close' });
  });

  test('sends the credentials in the URL', async () => {
    const end = await far();
    await send(post(end.url.replace('://', '://a%40b:c:d@')), open);
    expect(end.arrived[0]?.headers.authorization).toBe(`Basic ${Buffer.from('a@b:c:d').toString('base64')}`);
  });

  test('does not follow a redirect', async () => {
    const target = await far();
    const end = await far((response) => response.writeHead(302, { location: target.url }).end());
    expect(await send(post(end.url), open)).toEqual({ status: 302, retryAfterMs: null });
    expect(target.arrived).toEqual([]);
  });

  test('returns the delay in the Retry-After header', async () => {
    const end = await far((response) => response.writeHead(429, { 'retry-after': '7' }).end());
    expect(await send(post(end.url), open)).toEqual({ status: 429, retryAfterMs: 7_000 });
    expect(retryAfter('Fri, 20 Nov 2026 08:00:10 GMT', Date.UTC(2026, 10, 20, 8))).toBe(10_000);
    expect(retryAfter('Fri, 20 Nov 2026 08:00:10 GMT', Date.UTC(2027, 10, 20, 8))).toBe(0);
    for (const text of ['soon', '-1', '1e9', '']) expect(retryAfter(text, 0)).toBeNull();
  });

  test('times out if the server hangs, sends headers slowly, or never finishes its headers', async () => {
    const hang = await far(() => {});
    const drip = await far((_, __, socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket.write('x: y\r\n'), 20);
      socket.on('close', () => clearInterval(timer));
    });
    for (const end of [hang, drip]) {
      const attempt = await send(post(end.url), { ...open, timeoutMs: 300 });
      expect(attempt).toEqual({ status: null, reason: 'no answer within 1 seconds' });
    }
  });

  test('returns the status of a response with an endless body, and closes its connection', async () => {
    const closed = Promise.withResolvers<void>();
    const end = await far((response, _, socket) => {
      socket.on('close', () => closed.resolve());
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'.repeat(4096)), 5);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await send(post(end.url), open)).toEqual({ status: 200, retryAfterMs: null });
    await closed.promise;
  });

  test('returns the reason if the server does not respond', async () => {
    const end = await far((_, __, socket) => socket.resetAndDestroy());
    const reset = await far((_, __, socket) => socket.destroy());
    const noHttp = createTcp((socket) => socket.on('error', () => {}).end('SSH-2.0-OpenSSH\r\n'));
    await new Promise<void>((resolve) => noHttp.listen(0, '127.0.0.1', resolve));
    const headers = await far((response) => response.writeHead(200, { big: 'x'.repeat(20_000) }).end());
    const closedEnd = await farEnd();
    await closedEnd.close();
    const reasons = [
      await send(post(end.url), open),
      await send(post(reset.url), open),
      await send(post(`http://127.0.0.1:${(noHttp.address() as AddressInfo).port}/`), open),
      await send(post(headers.url), open),
      await send(post(closedEnd.url), open),
      await send(post(end.url.replace('http:', 'https:')), open),
      await send(post('http://no.such.host.invalid/'), open),
      await send(post('ftp://127.0.0.1/'), open),
    ].map((attempt) => attempt.status ?? attempt.reason);
    noHttp.close();
    expect(reasons).toEqual([
      'the connection was reset',
      'the connection was reset',
      'the response is not HTTP',
      'the response is not HTTP',
      'the connection was refused',
      expect.any(String),
      'the name no.such.host.invalid could not be resolved',
      'only http and https are supported',
    ]);
  });

  test('stops when the request is canceled', async () => {
    const end = await far(() => {});
    const controller = new AbortController();
    const sending = send(post(end.url), { ...open, signal: controller.signal });
    await end.seen(1);
    controller.abort();
    expect(await sending).toEqual({ status: null, reason: 'the request was canceled' });
    expect(await send(post(end.url), { ...open, signal: controller.signal })).toEqual({
      status: null,
      reason: 'the request was canceled',
    });
  });
});

describe('blocked addresses', () => {
  type Found = { address: string; family: number }[];
  const resolving = (...answers: Found[]) => {
    let turn = 0;
    return ((_name: string, _options: object, callback: (error: null, found: Found) => void) =>
      process.nextTick(callback, null, answers[Math.min(turn++, answers.length - 1)])) as unknown as typeof lookup;
  };
  const v4 = (address: string) => [{ address, family: 4 }];

  test('checks the address that the connection uses', async () => {
    const end = await far();
    const named = `http://hooks.example:${end.port}/hook`;
    expect(await send(post(named), { ...open, resolve: resolving(v4('127.0.0.1')) })).toMatchObject({ status: 200 });
    expect(end.arrived[0]?.headers.host).toBe(`hooks.example:${end.port}`);
    expect(await send(post(named), { ...open, resolve: resolving(v4('169.254.169.254')) })).toEqual({
      status: null,
      reason: 'hooks.example resolves to a blocked address',
    });
    // The name first resolves to a public address, and then to the metadata address.
    const rebinding = resolving(v4('127.0.0.1'), v4('169.254.169.254'));
    expect(await send(post(named), { ...open, resolve: rebinding })).toMatchObject({ status: 200 });
    expect(await send(post(named), { ...open, resolve: rebinding })).toMatchObject({ status: null });
    expect(end.arrived).toHaveLength(2);
  });

  test('connects to an allowed address of a name that also resolves to blocked addresses', async () => {
    const end = await far();
    const both = resolving([
      { address: 'fe80::1', family: 6 },
      { address: '::ffff:a9fe:a9fe', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]);
    expect(await send(post(`http://hooks.example:${end.port}/`), { ...open, resolve: both })).toMatchObject({
      status: 200,
    });
    const one = await new Promise((resolve) =>
      guardedLookup({ denyPrivate: false }, both)('x', { family: 0 }, (_, address) => resolve(address)),
    );
    expect(one).toBe('127.0.0.1');
  });

  test('does not resolve IP addresses, and blocks them in every notation', async () => {
    const resolve = (() => {
      throw new Error('it was asked');
    }) as unknown as typeof lookup;
    for (const host of ['169.254.169.254', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '[::ffff:a9fe:a9fe]'])
      expect(await send(post(`http://${host}/latest/meta-data`), { ...open, resolve })).toMatchObject({
        status: null,
        reason: expect.stringContaining('is a blocked address'),
      });
  });

  test('blocks loopback and private networks if they are denied', async () => {
    const end = await far();
    const denied = { ...open, denyPrivate: true };
    expect(await send(post(end.url), denied)).toMatchObject({ status: null });
    const home = resolving(v4('127.0.0.1'));
    expect(await send(post(`http://h.example:${end.port}/`), { ...denied, resolve: home })).toMatchObject({
      status: null,
    });
    expect(end.arrived).toEqual([]);
  });
});
