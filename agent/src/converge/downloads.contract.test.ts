import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from './test/agent.ts';
import { ContentServer, sha256Of } from './test/content-server.ts';
import { download, operation } from './test/desired.ts';

/** Tests downloads by a real agent from real servers. */

let home: string;
let agent: TestAgent;
let server: ContentServer;
const path = () => `${home}/root/app`;
const hasty = {
  ...systemClock,
  after: (ms: number, action: () => void) => systemClock.after(Math.min(ms, 20), action),
};
const start = async (environment: Record<string, string> = {}) => {
  agent = await startAgent(`${home}/data`, { environment, clock: hasty });
};
beforeEach(async () => {
  home = temporaryDirectory();
  for (const folder of ['data', 'root']) mkdirSync(`${home}/${folder}`, { mode: 0o700 });
  server = await ContentServer.open();
  await start();
});
afterEach(async () => {
  await agent.stop();
  await server.close();
  removeDirectory(home);
});

const run = async (kind: 'plan' | 'apply', body: Parameters<typeof download>[1]) => {
  const { results } = await agent.run(operation(kind, [download(path(), body)]));
  return results[0];
};
/** Applies a download that must fail, and checks that it leaves nothing behind. */
async function failing(body: Parameters<typeof download>[1], message: RegExp): Promise<void> {
  expect(await run('apply', body)).toMatchObject({ status: 'failed', message: expect.stringMatching(message) });
  expect(readdirSync(`${home}/root`)).toEqual([]);
}
const content = Buffer.alloc(300_000, 'content ');

test('plans without downloading, and does not download a file that already has the hash', async () => {
  const { url, sha256 } = server.serve('/app', content);
  expect(await run('plan', { url, sha256 })).toMatchObject({ action: 'create' });
  writeFileSync(path(), content);
  expect(await run('plan', { url, sha256 })).toMatchObject({ action: 'none' });
  expect(await run('apply', { url, sha256 })).toMatchObject({ status: 'unchanged' });
  expect(server.requests).toEqual([]);
});

test('resumes an interrupted download, even in the next operation', async () => {
  const { url, sha256 } = server.serve('/app', content);
  server.cuts = [100_000, 100_000];
  expect(await run('apply', { url, sha256 })).toMatchObject({ status: 'changed' });
  expect(readFileSync(path()).equals(content)).toBe(true);
  const [first, ...rest] = server.requests;
  expect([first, rest.length]).toEqual(['/app', 2]);
  expect(rest).toEqual(rest.map(() => expect.stringMatching(/^\/app bytes=[1-9]\d*-$/)));
  const next = server.serve('/next', Buffer.alloc(300_000, 'next'));
  server.cuts = [100_000, 0, 0, 0, 0];
  expect(await run('apply', next)).toMatchObject({ status: 'failed' });
  expect(readFileSync(path()).equals(content)).toBe(true);
  server.requests.length = 0;
  server.cuts = [];
  expect(await run('apply', next)).toMatchObject({ status: 'changed' });
  expect(server.requests).toEqual([expect.stringMatching(/^\/next bytes=[1-9]/)]);
});

test('fails if every connection breaks before any data arrives', async () => {
  const { url, sha256 } = server.serve('/app', content);
  server.cuts = [0, 0, 0, 0];
  await failing({ url, sha256 }, /^cannot download from http:\/\/127\.0\.0\.1:\d+\/app: .*in 4 attempts/);
  expect(await run('apply', { url, sha256 })).toMatchObject({ status: 'changed' });
});

test('restarts a download if the content on the server changes during it', async () => {
  const { url } = server.serve('/app', Buffer.alloc(300_000, 'old'));
  const sha256 = sha256Of(content);
  server.answers.set('/app', (_request, response) => {
    response.writeHead(200, { 'content-length': content.length });
    response.write(Buffer.alloc(1000, 'old'), () => response.destroy());
    server.answers.clear();
    server.serve('/app', content);
  });
  expect(await run('apply', { url, sha256 })).toMatchObject({ status: 'changed' });
  expect(readFileSync(path()).equals(content)).toBe(true);
});

test('refuses content with a different hash', async () => {
  const { url } = server.serve('/app', content);
  await failing({ url, sha256: '0'.repeat(64) }, /does not have the declared SHA-256/);
  expect(readdirSync(`${home}/data/state/contents`)).toEqual([]);
});

test('fails if the server does not respond with the content', async () => {
  const sha256 = sha256Of(content);
  await failing({ url: server.url('/none'), sha256 }, /answers 404 Not Found/);
  server.answers.set('/large', (_request, response) => {
    response.writeHead(200, { 'content-length': 5 * 1024 ** 3 });
    response.write('x');
  });
  await failing({ url: server.url('/large'), sha256 }, /larger than 4 GiB/);
  server.answers.set('/circle', (_request, response) => response.writeHead(302, { location: '/circle' }).end());
  await failing({ url: server.url('/circle'), sha256 }, /redirects more than 10 times/);
  server.answers.set('/file', (_request, response) =>
    response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  );
  await failing({ url: server.url('/file'), sha256 }, /neither http nor https/);
});

test("sends the URL's credentials only to its server, and never shows them", async () => {
  const { sha256 } = server.serve('/app', content);
  const other = await ContentServer.open();
  const seen: (string | undefined)[] = [];
  server.answers.set('/app', (request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(302, { location: other.url('/app') }).end();
  });
  other.answers.set('/app', (request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(403).end();
  });
  const url = server.url('/app?token=hidden').replace('//', '//user:hidden@');
  server.answers.set('/app?token=hidden', server.answers.get('/app') as never);
  await failing(
    { url, sha256 },
    /^cannot download from http:\/\/127\.0\.0\.1:\d+\/app: the server answers 403 Forbidden$/,
  );
  expect(seen).toEqual([`Basic ${Buffer.from('user:hidden').toString('base64')}`, undefined]);
  await other.close();
});

test('reads the hash from a checksum file, but only over HTTPS', async () => {
  spawnSync('openssl', [
    ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost'.split(' '),
    ...['-addext', 'subjectAltName=DNS:localhost', '-keyout', `${home}/key`, '-out', `${home}/cert`],
  ]);
  const secure = await ContentServer.open({
    key: readFileSync(`${home}/key`, 'utf8'),
    cert: readFileSync(`${home}/cert`, 'utf8'),
  });
  const { sha256 } = secure.serve('/v1/app', content);
  secure.serve('/v1/SUMS', `${'0'.repeat(64)}  other\n${sha256} *./app\n`);
  const body = { url: secure.url('/v1/app', 'localhost'), sha256_url: secure.url('/v1/SUMS', 'localhost') };
  await failing(body, /certificate of the server is not valid here/);
  await agent.stop();
  const trusting = { SSL_CERT_FILE: `${home}/cert` };
  await start(trusting);
  expect(await run('plan', body)).toMatchObject({ action: 'create' });
  expect(await run('apply', body)).toMatchObject({ status: 'changed' });
  expect(readFileSync(path()).equals(content)).toBe(true);
  secure.serve('/v1/app', 'next');
  secure.serve('/v1/SUMS', `${sha256Of('next')}  app\n`);
  const drift = await agent.run(operation('drift'));
  expect(drift.results).toMatchObject([{ changes: [{ field: 'content', to: `sha256:${sha256Of('next')}` }] }]);
  // First connects through a proxy; then a redirect leads to a server without HTTPS.
  await agent.stop();
  await start({ ...trusting, https_proxy: server.url('') });
  expect(await run('apply', body)).toMatchObject({ status: 'changed' });
  expect(server.requests).toContain(`CONNECT localhost:${secure.port}`);
  server.serve('/app', 'next');
  secure.answers.set('/v1/app', (_request, response) =>
    response.writeHead(302, { location: server.url('/app') }).end(),
  );
  secure.serve('/v1/SUMS', `${sha256Of('again')}  app\n`);
  expect(await run('apply', body)).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('redirects from https to http'),
  });
  expect(readFileSync(path(), 'utf8')).toBe('next');
  expect(server.requests).not.toContain('/app');
  await secure.close();
});

test('requests content from an HTTP server through a proxy', async () => {
  await agent.stop();
  await start({ http_proxy: server.url('') });
  server.answers.set('http://downloads.example/app', (_request, response) => response.end(content));
  expect(await run('apply', { url: 'http://downloads.example/app', sha256: sha256Of(content) })).toMatchObject({
    status: 'changed',
  });
});
