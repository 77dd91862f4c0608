import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { expect, test } from 'vitest';
import { directory, file, operation, sourced } from '../../converge/test/desired.ts';
import { useAgent } from '../../converge/test/harness.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import type { Machine } from '../provider/provider.ts';
import { removeTree } from './tree.ts';

const h = useAgent();
const at = (name: string): string => `${h.root}/${name}`;
const gone = (path = at('d')) => directory(path, { ensure: 'absent', force: true });
const run = (kind: 'plan' | 'apply' | 'drift', ...resources: ReturnType<typeof file>[]) =>
  h.agent.run(operation(kind, resources));
const messageOf = async (...resources: ReturnType<typeof file>[]) =>
  (await run('plan', ...resources)).results.at(-1)?.message;
function lay(): void {
  mkdirSync(at('d/sub/deep'), { recursive: true });
  mkdirSync(at('kept'));
  writeFileSync(at('kept/f'), 'kept');
  writeFileSync(at('d/sub/f'), 'f');
  symlinkSync(at('kept'), at('d/link'));
  spawnSync('mkfifo', [at('d/sub/deep/pipe')]);
}

test('refuses a directory that is not empty, and explains how to remove it', async () => {
  lay();
  expect(await messageOf(directory(at('d'), { ensure: 'absent' }))).toContain(
    'it is not empty, and its content could not be restored; declare `force: true`',
  );
});

test('removes the tree with force, lists it in the plan, and does not follow links', async () => {
  lay();
  const planned = await run('plan', gone());
  expect(planned.results[0]).toMatchObject({
    action: 'remove',
    changes: [
      { field: 'ensure', from: 'present', to: 'absent' },
      { field: 'force', from: '5 entries below', to: null },
    ],
    diff: ['link', 'sub', 'sub/deep', 'sub/deep/pipe', 'sub/f'].map((name) => `-${at('d')}/${name}\n`).join(''),
  });
  expect(lstatSync(at('d/sub/deep/pipe')).isFIFO()).toBe(true);
  expect((await run('apply', gone())).finished.status).toBe('succeeded');
  expect(existsSync(at('d'))).toBe(false);
  expect(readFileSync(at('kept/f'), 'utf8')).toBe('kept');
  expect((await run('apply', gone())).finished.summary).toMatchObject({ unchanged: 1 });
  expect((await run('drift')).results).toEqual([]);
});

test('restores the directory without its content', async () => {
  mkdirSync(at('d'), { mode: 0o750 });
  writeFileSync(at('d/f'), 'f');
  await run('apply', gone());
  expect((await run('apply')).finished.status).toBe('succeeded');
  expect(statSync(at('d')).mode & 0o777).toBe(0o750);
  expect(existsSync(at('d/f'))).toBe(false);
});

test('removes a tree that the module created together with its files', async () => {
  await run('apply', directory(at('d')), sourced(at('d/css/a.css'), 'a'), sourced(at('d/index.html'), 'i'));
  writeFileSync(at('d/css/by-hand'), 'x');
  expect((await run('apply', gone())).finished.status).toBe('succeeded');
  expect(existsSync(at('d'))).toBe(false);
});

test('keeps a tree that contains a file of another module', async () => {
  lay();
  const theirs = file(at('d/sub/theirs'), { content: 'theirs' }, { module: 'audited' });
  await run('apply', theirs);
  const { results } = await h.agent.run(operation('apply', [gone()], { keep_modules: ['audited'] }));
  expect(results[0]).toMatchObject({
    status: 'failed',
    message: expect.stringContaining(`it contains ${at('d/sub/theirs')}, which belongs to a resource`),
  });
  expect(existsSync(at('d/sub/f'))).toBe(true);
});

test("refuses system directories, the agent's directories, paths through links, and trees that are too deep", async () => {
  lay();
  for (const path of ['/etc', '/usr', '/home', '/var/lib', '/proc/self', '/sys/fs'])
    expect(await messageOf(gone(path))).toContain('is a system directory');
  for (const path of [h.dataDir, `${h.dataDir}/state`, `${h.dataDir}/state/before`])
    expect(await messageOf(gone(path))).toContain('the state of this agent');
  symlinkSync(at('d'), at('way'));
  expect(await messageOf(gone(at('way')))).toMatch(/by a symbolic link|symbolic link, not/);
  mkdirSync(`${at('d')}${'/d'.repeat(70)}`, { recursive: true });
  expect(await messageOf(gone())).toContain('nested more than 64 deep');
  const name = Buffer.concat([Buffer.from(`${at('other')}/`), Buffer.from([0xff])]);
  mkdirSync(at('other'));
  writeFileSync(name, 'x');
  expect(await messageOf(gone(at('other')))).toContain('its name is not UTF-8');
});

test('continues a removal that was interrupted after any entry', async () => {
  for (let killed = 0; killed < 5; killed++) {
    lay();
    let changes = 0;
    const changedDirectory = () => {
      if (changes++ === killed) throw new Error('killed');
    };
    const machine = { walk: new PathWalk(), ownPaths: [], changedDirectory } as unknown as Machine;
    await expect(removeTree(at('d'), machine)).rejects.toThrow('killed');
    expect(existsSync(at('d'))).toBe(true);
    expect((await run('apply', gone())).finished.status).toBe('succeeded');
    expect(readFileSync(at('kept/f'), 'utf8')).toBe('kept');
    await run('apply');
    expect(readdirSync(at('d'))).toEqual([]);
    rmSync(at('d'), { recursive: true });
    rmSync(at('kept'), { recursive: true });
  }
});

test('keeps a tree with a mounted file system, directory, or file', () => {
  lay();
  writeFileSync(at('outside'), 'outside');
  const script = `
    const { PathWalk } = await import('${new URL('../../host/files/path-walk.ts', import.meta.url)}');
    const { observeTree, removeTree } = await import('${new URL('./tree.ts', import.meta.url)}');
    const machine = { walk: new PathWalk(), ownPaths: [], keeps: () => false, changedDirectory() {} };
    console.log(observeTree(process.argv[1], machine).refusal);
    await removeTree(process.argv[1], machine).catch(({ message }) => console.log(message));`;
  for (const [mount, point] of [
    ['-t tmpfs tmpfs', 'd/sub/deep'],
    [`--bind ${at('kept')}`, 'd/sub'],
    [`--bind ${at('outside')}`, 'd/sub/f'],
    ['-t tmpfs tmpfs', 'd'],
  ]) {
    const mounts = `mount ${mount} ${at(`${point}`)} && exec "$@"`;
    const node = [process.execPath, '--input-type=module', '-e', script, at('d')];
    const refused = execFileSync('unshare', ['-m', 'sh', '-c', mounts, 'sh', ...node], { encoding: 'utf8' });
    expect(refused).toBe(`${at('d')} is not removed: ${at(`${point}`)} is a mount point; unmount it first\n`.repeat(2));
    expect(existsSync(at('d/sub/f'))).toBe(true);
    expect(readFileSync(at('kept/f'), 'utf8')).toBe('kept');
  }
});
