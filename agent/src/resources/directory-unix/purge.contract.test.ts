import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../../converge/test/agent.ts';
import { directory, file, operation, sourced } from '../../converge/test/desired.ts';
import { snapshotTree } from '../../converge/test/tree.ts';

let home: string;
let root: string;
let agent: TestAgent;
beforeEach(async () => {
  home = temporaryDirectory();
  root = `${home}/www`;
  mkdirSync(`${home}/data`, { mode: 0o700 });
  agent = await startAgent(`${home}/data`);
});
afterEach(async () => {
  await agent.stop();
  removeDirectory(home);
});

const purged = () => directory(root, { source: 'files/www', purge: true });
const apply = (...resources: ReturnType<typeof file>[]) => agent.run(operation('apply', resources));
const plan = (...resources: ReturnType<typeof file>[]) => agent.run(operation('plan', resources));

test('removes undeclared entries, lists them in plans and drift checks, and restores them on removal', async () => {
  mkdirSync(`${root}/old/deep`, { recursive: true });
  writeFileSync(`${root}/old/deep/a`, 'theirs');
  writeFileSync(`${root}/index.html`, 'before');
  const before = snapshotTree(root);
  const resources = [purged(), sourced(`${root}/index.html`, 'one'), sourced(`${root}/css/a.css`, 'a {}')];
  const planned = await plan(...resources);
  expect(planned.results[0]).toMatchObject({
    action: 'update',
    changes: [{ field: 'purge', from: '3 undeclared entries', to: null }],
    diff: `-${root}/old\n-${root}/old/deep\n-${root}/old/deep/a\n`,
  });
  expect(snapshotTree(root)).toEqual(before);
  expect((await apply(...resources)).finished.status).toBe('succeeded');
  expect(readdirSync(root).sort()).toEqual(['css', 'index.html']);
  expect((await apply(...resources)).finished.summary).toMatchObject({ unchanged: 3 });
  expect((await agent.run(operation('drift'))).results).toEqual([]);

  writeFileSync(`${root}/css/by-hand`, 'x');
  const drift = await agent.run(operation('drift'));
  expect(drift.results).toMatchObject([{ identity: root, changes: [{ field: 'purge', from: '1 undeclared entry' }] }]);
  expect((await apply(...resources)).results[0]).toMatchObject({ status: 'changed', corrective: true });
  expect(existsSync(`${root}/css/by-hand`)).toBe(false);

  expect((await apply()).finished.status).toBe('succeeded');
  // A file that was added later is restored as well.
  expect(readFileSync(`${root}/css/by-hand`, 'utf8')).toBe('x');
  removeDirectory(`${root}/css`);
  expect(snapshotTree(root)).toEqual(before);
});

test('observes a purged directory without other resources, as a drift check does', async () => {
  const resources = [purged(), sourced(`${root}/a`, 'a')];
  await apply(...resources);
  const observe = () => agent.engine.observe(new Set([`path:${root}`]));
  await expect.poll(observe).toEqual(new Map([[`path:${root}`, '']]));
});

test('restores a file that is no longer in the source folder, and removes it with the next apply', async () => {
  mkdirSync(root);
  writeFileSync(`${root}/a`, 'before');
  await apply(purged(), sourced(`${root}/a`, 'ours'));
  expect((await apply(purged())).finished.status).toBe('succeeded');
  expect(readFileSync(`${root}/a`, 'utf8')).toBe('before');
  await apply(purged());
  expect(existsSync(`${root}/a`)).toBe(false);
  await apply();
  expect(readFileSync(`${root}/a`, 'utf8')).toBe('before');
});

test('removes a directory that it created, and restores no purged entries', async () => {
  await apply(purged(), sourced(`${root}/a`, 'a'));
  writeFileSync(`${root}/b`, 'b');
  await apply(purged(), sourced(`${root}/a`, 'a'));
  await apply();
  expect(existsSync(root)).toBe(false);
});

test('refuses entries that it could not restore, and system directories', async () => {
  const message = async (...resources: ReturnType<typeof file>[]) => (await plan(...resources)).results[0]?.message;
  expect(await message(directory('/etc', { source: 'files/etc', purge: true }))).toContain('is a system directory');
  mkdirSync(root);
  symlinkSync(root, `${home}/link`);
  expect(await message(directory(`${home}/link`, { source: 'x', purge: true }))).toMatch(
    /by a symbolic link|symbolic link, not/,
  );
  spawnSync('mkfifo', [`${root}/pipe`]);
  expect(await message(purged())).toContain(`${root}/pipe is a FIFO`);
  expect(existsSync(`${root}/pipe`)).toBe(true);
});

test('keeps the files of modules that are not part of the operation', async () => {
  const theirs = file(`${root}/sub/theirs`, { content: 'theirs' }, { module: 'audited' });
  await apply(purged(), theirs);
  writeFileSync(`${root}/sub/foreign`, 'x');
  const { results, finished } = await agent.run(operation('apply', [purged()], { keep_modules: ['audited'] }));
  expect(finished.status).toBe('succeeded');
  expect(results).toMatchObject([{ identity: root, diff: `-${root}/sub/foreign\n` }]);
  expect(readFileSync(`${root}/sub/theirs`, 'utf8')).toBe('theirs');
});

test('refuses directories that are nested too deep', async () => {
  mkdirSync(`${root}${'/d'.repeat(70)}`, { recursive: true });
  expect((await plan(purged())).results[0]?.message).toContain('nested more than 64 deep: remove them by hand');
});
