import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { routes } from '@muster/protocol/http';
import { afterAll, describe, expect, test } from 'vitest';
import { addressOf, bearer, testApp } from '../../../test/app-fixture.ts';
import { isForeign, ownOrigins } from './origin.ts';

const own = ['https://muster.example'];
const page = { method: 'GET', origin: undefined, site: undefined, mode: undefined };

describe('ownOrigins', () => {
  test('returns origins with the scheme, host, and port that the client used', () => {
    expect(ownOrigins('https', 'muster.example', null)).toEqual(['https://muster.example']);
    expect(ownOrigins('https', 'Muster.Example:443', null)).toEqual(['https://muster.example']);
    expect(ownOrigins('https', '[::1]:4748', null)).toEqual(['https://[::1]:4748']);
    // Accepts HTTPS in place of HTTP, because an undeclared proxy may terminate TLS, but not the reverse.
    expect(ownOrigins('http', 'muster.example', null)).toEqual(['http://muster.example', 'https://muster.example']);
    expect(ownOrigins('https', '127.0.0.1:4748', 'https://muster.example/below')).toEqual([
      'https://127.0.0.1:4748',
      'https://muster.example',
    ]);
  });

  test('returns no origin for an invalid host', () => {
    for (const host of ['', 'a b', 'x/../y@', '%']) expect(ownOrigins('https', host, null)).not.toContain('null');
    expect(ownOrigins('https', '', null)).toEqual([]);
  });
});

describe('isForeign', () => {
  test.each([
    'https://evil.example',
    'https://muster.example.evil.example',
    'https://evil.example/https://muster.example',
    'https://evil.example#muster.example',
    'https://evil.example?https://muster.example',
    'https://muster.example@evil.example',
    'https://evil@muster.example',
    'https://muster.example/',
    'https://muster.example/path',
    'https://muster.example.',
    'https://muster.example:8443',
    'https://sub.muster.example',
    'https://xmuster.example',
    'http://muster.example',
    'wss://muster.example',
    'https://muster.example, https://evil.example',
    'https://muster.example https://evil.example',
    ' https://muster.example',
    '//muster.example',
    'muster.example',
    'file://',
    'chrome-extension://abcdef',
    'null',
    'NULL',
    '',
    '*',
  ])('refuses a request with the Origin %j', (origin) => {
    expect(isForeign({ ...page, origin }, own, true)).toBe(true);
    expect(isForeign({ ...page, origin, site: 'same-origin' }, own, false)).toBe(true);
    expect(isForeign({ ...page, origin, site: 'none', mode: 'navigate' }, own, true)).toBe(true);
  });

  test("accepts the console's pages in any letter case, and requests without page headers", () => {
    expect(isForeign(page, own, false)).toBe(false);
    expect(isForeign({ ...page, origin: 'https://muster.example' }, own, false)).toBe(false);
    expect(isForeign({ ...page, origin: 'https://Muster.example', site: 'same-origin' }, own, false)).toBe(false);
    expect(isForeign({ ...page, site: 'none', mode: 'navigate' }, own, false)).toBe(false);
  });

  test.each(['cross-site', 'same-site', 'same-origin, cross-site', 'Same-Origin', ''])(
    'treats Sec-Fetch-Site %j as foreign, except for links to a page',
    (site) => {
      expect(isForeign({ ...page, site, mode: 'no-cors' }, own, true)).toBe(true);
      expect(isForeign({ ...page, site }, own, true)).toBe(true);
      expect(isForeign({ ...page, site, mode: 'navigate' }, own, true)).toBe(false);
      expect(isForeign({ ...page, site, mode: 'navigate', method: 'POST' }, own, true)).toBe(true);
      expect(isForeign({ ...page, site, mode: 'navigate' }, own, false)).toBe(true);
      expect(isForeign({ ...page, origin: 'https://muster.example', site, mode: 'cors' }, own, false)).toBe(true);
    },
  );
});

describe('request from a foreign page', () => {
  const foreign = { origin: 'https://evil.example' };
  const app = testApp();
  afterAll(() => app.close());
  const corsHeaders = (headers: object) => Object.keys(headers).filter((name) => name.startsWith('access-control'));

  test('refuses requests from a foreign page on every route, with or without a session', async () => {
    for (const route of routes)
      for (const authorization of [{}, bearer('admin')]) {
        const headers = { ...foreign, ...authorization, 'content-type': 'application/json' };
        const answer = await app.inject({ method: route.method, url: addressOf(route), headers, payload: '{' });
        expect(answer.statusCode, route.id).toBe(403);
        expect(answer.json(), route.id).toMatchObject({ code: 'origin_refused' });
        expect(corsHeaders(answer.headers)).toEqual([]);
      }
  });

  test.each(['/', '/docs', '/openapi.json', '/healthz', '/readyz', '/schemas/module/v1.json', '/install/agent.sh'])(
    'refuses a request from a foreign page at %s',
    async (url) => {
      for (const headers of [foreign, { origin: 'null' }, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }])
        expect((await app.inject({ url, headers })).json()).toMatchObject({ code: 'origin_refused' });
    },
  );

  test('refuses requests from a foreign page at unknown and malformed paths', async () => {
    for (const url of ['/api/v1/nothing', '/nothing', '/api/v1/agents/%zz', '/%zz'])
      expect((await app.inject({ url, headers: foreign })).json(), url).toMatchObject({ code: 'origin_refused' });
  });

  test('refuses links from foreign pages to the API in any spelling of the path', async () => {
    const led = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', ...bearer('admin') };
    for (const path of [
      '/api/v1/agents',
      '/%61pi/v1/agents',
      '/api%2Fv1/agents',
      '/api/%76%31/nothing',
      '/%61pi/v1/%zz',
    ])
      expect((await app.inject({ url: path, headers: led })).json(), path).toMatchObject({ code: 'origin_refused' });
    const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const socket = connect(Number(url.port), url.hostname);
    const headers = Object.entries(led).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`GET ${url.origin}/api/v1/agents HTTP/1.1\r\nhost: ${url.host}\r\n${headers.join('')}\r\n`);
    expect(await text(socket)).toContain('origin_refused');
  });

  test('reveals no routes to clients without a session in any spelling of the path', async () => {
    for (const path of ['/api/v1/nothing', '/%61pi/v1/nothing', '/api%2Fv1/nothing'])
      expect((await app.inject(path)).statusCode, path).toBe(401);
  });

  test('treats every page as foreign if the request has no Host header', async () => {
    const app = testApp();
    const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const socket = connect(Number(url.port), url.hostname);
    socket.end('GET /healthz HTTP/1.0\r\norigin: https://evil.example\r\n\r\n');
    expect(await text(socket)).toContain('origin_refused');
    await app.close();
  });

  test('does not approve preflight requests', async () => {
    const asks = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };
    for (const [headers, status] of [
      [foreign, 403],
      [{ origin: 'http://localhost' }, 401],
    ] as const) {
      const answer = await app.inject({
        method: 'OPTIONS',
        url: '/api/v1/agents',
        headers: { host: 'localhost', ...asks, ...headers },
      });
      expect(answer.statusCode).toBe(status);
      expect(corsHeaders(answer.headers)).toEqual([]);
    }
  });
});

describe('request from an own page', () => {
  const ask = (app: ReturnType<typeof testApp>, headers: object) =>
    app.inject({ url: '/api/v1/agents', headers: { ...bearer('admin'), ...headers } });

  test("responds to requests from the console's pages without CORS headers", async () => {
    const answer = await ask(testApp(), {
      host: 'muster.example:4748',
      origin: 'http://muster.example:4748',
      'sec-fetch-site': 'same-origin',
      'sec-fetch-mode': 'cors',
    });
    expect(answer.statusCode).toBe(200);
  });

  test('accepts the origin that a trusted proxy forwards, and the configured origin', async () => {
    const origin = 'https://muster.example';
    const said = { host: '10.0.0.1:4748', 'x-forwarded-host': 'muster.example', 'x-forwarded-proto': 'https', origin };
    expect((await ask(testApp({}, { trustedProxies: ['127.0.0.1'] }), said)).statusCode).toBe(200);
    expect((await ask(testApp(), said)).statusCode).toBe(403);
    const http = { ...said, origin: 'http://muster.example' };
    expect((await ask(testApp({}, { trustedProxies: ['127.0.0.1'] }), http)).statusCode).toBe(403);
    expect((await ask(testApp({}, { publicUrl: 'https://muster.example/' }), said)).statusCode).toBe(200);
    expect((await ask(testApp({}, { publicUrl: 'https://muster.example/' }), http)).statusCode).toBe(403);
  });
});
