import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../../converge/test/agent.ts';
import { ContentServer } from '../../converge/test/content-server.ts';
import { aptPackage, operation, packageFrom } from '../../converge/test/desired.ts';
import { findPackage, readDpkg } from '../../host/packages/dpkg.ts';

/** Tests plans with real .deb files of a package that this machine has. The tests change no package. */

const name = 'dpkg';
const found = findPackage(readDpkg(), name);
const installed = found?.version ?? '';

let home: string;
let agent: TestAgent;
let server: ContentServer;
const start = async (environment: Record<string, string> = {}) => {
  agent = await startAgent(`${home}/data`, { environment });
};
beforeEach(async () => {
  home = temporaryDirectory();
  mkdirSync(`${home}/data`, { mode: 0o700 });
  server = await ContentServer.open();
  await start();
});
afterEach(async () => {
  await agent.stop();
  await server.close();
  removeDirectory(home);
});

/** Builds a .deb file without files in it. */
function built(version: string, architecture = found?.architecture ?? ''): Buffer {
  mkdirSync(`${home}/tree/DEBIAN`, { recursive: true });
  const fields = { Package: name, Version: version, Architecture: architecture, Maintainer: 'A', Description: 'a' };
  const control = Object.entries(fields).map(([key, value]) => `${key}: ${value}\n`);
  writeFileSync(`${home}/tree/DEBIAN/control`, control.join(''));
  const { stderr, status } = spawnSync('dpkg-deb', ['--build', `${home}/tree`, `${home}/it.deb`], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return readFileSync(`${home}/it.deb`);
}

const plan = async (resource: ResolvedResource) => (await agent.run(operation('plan', [resource]))).results[0];

test('compares the installed version with that of a file next to the module', async () => {
  expect(await plan(packageFrom(built(installed), { name }))).toMatchObject({ action: 'none' });
  expect(await plan(packageFrom(built('999:1'), { name }))).toMatchObject({
    action: 'update',
    changes: [{ field: 'version', from: installed, to: '999:1' }],
  });
  expect(await plan(packageFrom(built('0~1'), { name }))).toMatchObject({
    message: `0~1 is older than ${installed}, so this is a downgrade`,
  });
});

test('refuses a file for another architecture, or with another version than declared', async () => {
  expect(await plan(packageFrom(built(installed, 'alpha'), { name }))).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(/^the file is for the architecture alpha, not .*; nothing was installed$/),
  });
  const declared = { name, version: installed };
  const other = built('999:2');
  // The declared version is installed, so the file does not need to be read.
  expect(await plan(packageFrom(other, declared))).toMatchObject({ action: 'none' });
  expect(await plan(packageFrom(other, { name }))).toMatchObject({ action: 'update' });
  expect(await plan(packageFrom(other, declared))).toMatchObject({
    status: 'failed',
    message: `the file has version 999:2, not the declared ${installed}; nothing was installed`,
  });
});

test('downloads a file once for all plans, also after a restart, and resumes after an interrupted connection', async () => {
  const body = { name, ...server.serve('/it.deb', built(installed)) };
  server.cuts = [100];
  expect(await plan(aptPackage(body))).toMatchObject({ action: 'none' });
  expect(server.requests).toEqual(['/it.deb', '/it.deb bytes=100-']);
  await agent.stop();
  await start();
  expect(await plan(aptPackage(body))).toMatchObject({ action: 'none' });
  expect(server.requests).toHaveLength(2);
});

test.each([
  ['text', Buffer.from('This is a text and not a package.\n')],
  ['nothing', Buffer.alloc(0)],
  ['the magic of an archive only', Buffer.from('!<arch>\n')],
])('refuses a file with %s', async (_what, content) => {
  expect(await plan(aptPackage({ name, ...server.serve('/it.deb', content) }))).toMatchObject({
    status: 'failed',
    message: expect.stringMatching(/^the file is not a \.deb file: dpkg-deb: error: [^/]*the file[^/]*$/),
  });
});

test('follows no redirect from https to http', async () => {
  spawnSync('openssl', [
    ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost'.split(' '),
    ...['-addext', 'subjectAltName=DNS:localhost', '-keyout', `${home}/key`, '-out', `${home}/cert`],
  ]);
  const identity = { key: readFileSync(`${home}/key`, 'utf8'), cert: readFileSync(`${home}/cert`, 'utf8') };
  const secure = await ContentServer.open(identity);
  await agent.stop();
  await start({ SSL_CERT_FILE: `${home}/cert` });
  const { url, sha256 } = server.serve('/it.deb', built(installed));
  secure.answers.set('/it.deb', (_request, response) => response.writeHead(302, { location: url }).end());
  expect(await plan(aptPackage({ name, url: secure.url('/it.deb', 'localhost'), sha256 }))).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('redirects from https to http'),
  });
  expect(server.requests).toEqual([]);
  await secure.close();
});
