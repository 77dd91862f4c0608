import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ResolvedResource } from '@muster/protocol/module';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../../converge/test/agent.ts';
import { ContentServer } from '../../converge/test/content-server.ts';
import { operation, workingCopy } from '../../converge/test/desired.ts';
import { commit, madeRepository } from '../../converge/test/made-repository.ts';

/** Tests working copies of real repositories on a real file system. e2e/git.test.ts covers SSH. */

let home: string;
let agent: TestAgent;
let repository: string;
const path = () => `${home}/root/app`;
const start = async (environment: Record<string, string> = {}) => {
  agent = await startAgent(`${home}/data`, { environment });
};
beforeEach(async () => {
  home = temporaryDirectory();
  for (const folder of ['data', 'root']) mkdirSync(`${home}/${folder}`, { mode: 0o700 });
  repository = madeRepository(home);
  await start();
});
afterEach(async () => {
  await agent.stop();
  removeDirectory(home);
});
const copy = (body: Partial<Parameters<typeof workingCopy>[1]> = {}) =>
  workingCopy(path(), { url: repository, revision: 'main', ...body });
const run = async (kind: 'plan' | 'apply' | 'drift', ...resources: ResolvedResource[]) =>
  (await agent.run(operation(kind, resources))).results;
const content = () => readFileSync(`${path()}/f`, 'utf8').trim();
const head = (folder: string, revision = 'HEAD') => commit(folder, `git rev-parse ${revision}`);

test('updates to new commits of a branch, and stays at a tag or a commit', async () => {
  await run('apply', copy());
  // Moves the reference to the commit that the agent checked out into another file.
  commit(path(), 'git pack-refs --all');
  commit(repository, 'echo 3 > f; git commit -qam three');
  expect(await run('drift')).toEqual([]);
  expect(await run('plan', copy())).toMatchObject([
    { changes: [{ field: 'revision', from: head(path()), to: head(repository) }] },
  ]);
  expect(await run('apply', copy())).toMatchObject([{ status: 'changed' }]);
  expect(content()).toBe('3');
  expect(await run('apply', copy({ revision: 'v1' }))).toMatchObject([{ status: 'changed' }]);
  expect(content()).toBe('1');
  const two = head(repository, 'main~1');
  expect(await run('apply', copy({ revision: two, depth: 1 }))).toMatchObject([{ status: 'changed' }]);
  expect(content()).toBe('2');
  expect(await run('apply', copy({ revision: 'none' }))).toMatchObject([
    { status: 'failed', message: expect.stringContaining('has neither a tag nor a branch none') },
  ]);
});

test('fetches a commit with limited history, and its submodules', async () => {
  const inner = head(repository, 'v1^{}');
  expect(await run('apply', copy({ revision: inner, url: `file://${repository}`, depth: 1 }))).toMatchObject([
    { status: 'changed' },
  ]);
  expect(commit(path(), 'git rev-list --count HEAD')).toBe('1');
  commit(home, 'git init -q -b main lib; cd lib; echo lib > l; git add l; git commit -qm lib');
  commit(repository, `git -c protocol.file.allow=always submodule -q add ${home}/lib lib; git commit -qam lib`);
  // The agent refuses submodules that use the `file` protocol, which could read any repository on the machine.
  expect(await run('apply', copy({ submodules: true }))).toMatchObject([
    { status: 'failed', message: expect.stringContaining("'file' not allowed") },
  ]);
});

test('never discards local changes or commits without force', async () => {
  await run('apply', copy());
  writeFileSync(`${path()}/untracked`, 'stays');
  writeFileSync(`${path()}/f`, 'by hand');
  expect(await run('drift')).toMatchObject([{ changes: [{ field: 'work_tree', from: 'changed: f' }] }]);
  const refused = [{ status: 'failed', message: expect.stringMatching(/local changes, in f: .*`force: true`/) }];
  expect(await run('plan', copy({ revision: 'v1' }))).toMatchObject(refused);
  expect(await run('apply', copy({ revision: 'v1' }))).toMatchObject(refused);
  expect(await run('apply')).toMatchObject(refused);
  expect(content()).toBe('by hand');
  commit(path(), 'git commit -qam mine');
  const unpushed = [{ status: 'failed', message: expect.stringContaining('has commits that are in no branch') }];
  expect(await run('apply', copy())).toMatchObject(unpushed);
  expect(content()).toBe('by hand');
  expect(await run('apply', copy({ force: true }))).toMatchObject([{ status: 'changed' }]);
  expect([content(), readFileSync(`${path()}/untracked`, 'utf8')]).toEqual(['2', 'stays']);
});

test('does not remove a working copy with files that exist only there, unless forced', async () => {
  commit(repository, 'echo built > .gitignore; git add .gitignore; git commit -qm ignore');
  await run('apply', copy());
  for (const name of ['upload', 'built']) writeFileSync(`${path()}/${name}`, 'data');
  expect(await run('apply', copy())).toMatchObject([{ status: 'unchanged' }]);
  const refused = [{ status: 'failed', message: expect.stringMatching(/not in the repository, such as upload: /) }];
  expect(await run('apply', copy({ ensure: 'absent' }))).toMatchObject(refused);
  expect(await run('apply')).toMatchObject(refused);
  expect(readFileSync(`${path()}/upload`, 'utf8')).toBe('data');
  await run('apply', copy({ force: true }));
  expect(await run('apply')).toMatchObject([{ status: 'changed' }]);
  expect(readdirSync(`${home}/root`)).toEqual([]);
});

test('takes over a working copy that others created, and restores its branch and URL', async () => {
  commit(
    home,
    `git clone -q ${repository} root/app; cd root/app; git checkout -q -b mine v1; git remote set-url origin /old`,
  );
  const state = () => commit(path(), 'git rev-parse HEAD; git symbolic-ref HEAD; git config remote.origin.url; cat f');
  const before = state();
  expect(await run('apply', copy())).toMatchObject([
    { status: 'changed', changes: [{ field: 'url' }, { field: 'revision' }] },
  ]);
  expect(content()).toBe('2');
  expect(await run('apply')).toMatchObject([{ status: 'changed' }]);
  expect(state()).toBe(before);
});

test('leaves no files behind after a failed clone, and refuses a directory that is not a working copy', async () => {
  expect(await run('apply', copy({ revision: '0'.repeat(40) }))).toMatchObject([
    { status: 'failed', message: expect.stringContaining('has no commit 0000') },
  ]);
  expect(readdirSync(`${home}/root`)).toEqual([]);
  mkdirSync(path());
  writeFileSync(`${path()}/data`, '');
  expect(await run('apply', copy())).toMatchObject([
    { status: 'failed', message: expect.stringContaining('is not a working copy of git') },
  ]);
});

test.skipIf(process.getuid?.() !== 0)('reads no file in a working copy that another user owns', async () => {
  await run('apply', copy());
  commit(path(), 'cd .git/refs/muster; rm revision; mkfifo revision; chown -R 65534 ../../..');
  expect(await run('plan', copy())).toMatchObject([
    { status: 'failed', message: expect.stringContaining('dubious ownership') },
  ]);
});

/** Serves the repository over HTTPS with Git's server program. */
async function serveGit(identity: { key: string; cert: string }): Promise<{ server: Server; url: string }> {
  const backend = `${spawnSync('git', ['--exec-path'], { encoding: 'utf8' }).stdout.trim()}/git-http-backend`;
  const server = createServer(identity, (request, response) => {
    if (request.url?.startsWith('/moved/')) {
      response.writeHead(301, { location: `http://127.0.0.1:1${request.url.slice(6)}` }).end();
      return;
    }
    if (request.url?.startsWith('/cut/') && request.method === 'POST') {
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
      response.write('0032', () => request.socket.destroy());
      return;
    }
    const { pathname, search } = new URL(request.url?.replace(/^\/cut/, '') ?? '/', 'https://x');
    const program = spawn(backend, {
      env: {
        ...{ GIT_PROJECT_ROOT: home, GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: pathname, QUERY_STRING: search.slice(1) },
        ...{ REQUEST_METHOD: request.method, CONTENT_TYPE: request.headers['content-type'] ?? '' },
        ...{
          GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
          HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
        },
      },
    });
    request.pipe(program.stdin);
    let head = Buffer.alloc(0);
    program.stdout.on('data', (piece: Buffer) => {
      if (response.headersSent) return void response.write(piece);
      head = Buffer.concat([head, piece]);
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return;
      const lines = head
        .subarray(0, end)
        .toString()
        .split('\r\n')
        .map((line) => line.split(': '));
      const status = lines.find(([name]) => name === 'Status')?.[1] ?? '200';
      response.writeHead(Number.parseInt(status, 10), Object.fromEntries(lines));
      response.write(head.subarray(end + 4));
    });
    program.stdout.on('end', () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `https://localhost:${(server.address() as AddressInfo).port}` };
}

test('clones over https from a valid server, also through a proxy, and does not follow a redirect to http', async () => {
  spawnSync('openssl', [
    ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost'.split(' '),
    ...['-addext', 'subjectAltName=DNS:localhost', '-keyout', `${home}/key`, '-out', `${home}/cert`],
  ]);
  const { server, url } = await serveGit({
    key: readFileSync(`${home}/key`, 'utf8'),
    cert: readFileSync(`${home}/cert`, 'utf8'),
  });
  const remote = copy({ url: `${url}/app/.git`, depth: 1 });
  expect(await run('apply', remote)).toMatchObject([
    { status: 'failed', message: expect.stringMatching(/certificate/i) },
  ]);
  await agent.stop();
  await start({ SSL_CERT_FILE: `${home}/cert` });
  expect(await run('apply', copy({ url: `${url}/moved/app/.git` }))).toMatchObject([
    { status: 'failed', message: expect.stringMatching(/http.*not (supported|allowed|enabled)|Protocol/i) },
  ]);
  expect(readdirSync(`${home}/root`)).toEqual([]);
  expect(await run('apply', copy({ url: `${url}/cut/app/.git`, revision: head(repository) }))).toMatchObject([
    { status: 'failed', message: expect.stringMatching(/^cannot check out .* of https:.*(EOF|RPC failed|hung up)/) },
  ]);
  expect(readdirSync(`${home}/root`)).toEqual([]);
  expect(await run('apply', remote)).toMatchObject([{ status: 'changed' }]);
  expect([content(), commit(path(), 'git rev-list --count HEAD')]).toEqual(['2', '1']);
  await agent.stop();
  const proxy = await ContentServer.open();
  await start({ SSL_CERT_FILE: `${home}/cert`, https_proxy: proxy.url('') });
  expect(await run('apply', copy({ url: `${url}/app/.git`, revision: 'v1' }))).toMatchObject([{ status: 'changed' }]);
  expect([content(), ...proxy.requests]).toEqual(['1', ...proxy.requests.map(() => `CONNECT ${new URL(url).host}`)]);
  expect(proxy.requests).not.toEqual([]);
  proxy.requests.length = 0;
  const other = workingCopy(`${home}/root/other`, { url: `${url}/app/.git`, revision: 'v1' });
  expect(await run('plan', copy({ url: `${url}/app/.git`, revision: 'v1' }), other)).toMatchObject([
    { action: 'none' },
    { action: 'create' },
  ]);
  // The agent looks up the revision once for both resources.
  expect(proxy.requests).toHaveLength(1);
  await proxy.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
