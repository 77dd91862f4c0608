import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { Journal } from '../journal/journal.ts';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from './test/agent.ts';
import { file, operation, script } from './test/desired.ts';
import { snapshotTree } from './test/tree.ts';

/** Tests full and read-only disks, on machines where the tests can create them. */

let home: string;
let mounts: string[];
let agent: TestAgent | null;
beforeEach(() => {
  home = temporaryDirectory();
  mounts = [];
  agent = null;
});
afterEach(async () => {
  await agent?.stop();
  for (const mount of mounts) spawnSync('umount', [mount]);
  removeDirectory(home);
});

const fail = (detail: string): never => {
  throw new Error(detail);
};

function mount(name: string, size: string): string {
  const path = `${home}/${name}`;
  mkdirSync(path, { mode: 0o700 });
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'tmpfs', path]);
  if (status !== 0) throw new Error(`mount: ${stderr}`);
  mounts.push(path);
  return path;
}
const data = () => {
  mkdirSync(`${home}/data`, { mode: 0o700 });
  return `${home}/data`;
};
const canMount = (() => {
  if (process.geteuid?.() !== 0) return false;
  const path = temporaryDirectory();
  const mounted = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', path]).status === 0;
  if (mounted) spawnSync('umount', [path]);
  removeDirectory(path);
  return mounted;
})();

describe.runIf(canMount)('with separate file systems (root, mount)', () => {
  test('keeps the file and fails only its resource if the disk is full', async () => {
    const root = mount('small', '64k');
    writeFileSync(`${root}/f`, 'old\n');
    agent = await startAgent(data());
    const before = snapshotTree(root);
    const outcome = await agent.run(
      operation('apply', [
        file(`${root}/f`, { content: 'x'.repeat(200_000) }),
        file(`${home}/other`, { content: 'y' }),
      ]),
    );
    expect(outcome.results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('no space left') },
      { status: 'changed' },
    ]);
    expect(snapshotTree(root)).toEqual(before);
  });

  test('keeps the file and fails its resource if the disk is read-only', async () => {
    const root = mount('fixed', '64k');
    writeFileSync(`${root}/f`, 'old\n');
    spawnSync('mount', ['-o', 'remount,ro', root]);
    agent = await startAgent(data());
    const outcome = await agent.run(operation('apply', [file(`${root}/f`, { content: 'new' }), file(`${root}/new/f`)]));
    expect(outcome.results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('read-only') },
      { status: 'failed', message: expect.stringContaining('read-only') },
    ]);
  });

  test('starts with the existing journal if the disk is too full to compact it', async () => {
    const dataDir = mount('data', '12m');
    const first = await Journal.open(dataDir, systemClock, () => {}, fail);
    for (let i = 0; i < 5; i++) first.record('x', [{ t: 'settled', ids: ['x'.repeat(1024 * 1024)] }]);
    await first.close();
    expect(() => writeFileSync(`${dataDir}/rest`, Buffer.alloc(12 * 1024 * 1024))).toThrow(/ENOSPC/);
    const outcome: string[] = [];
    const second = await Journal.open(
      dataDir,
      systemClock,
      () => {},
      (detail) => outcome.push(detail),
    );
    expect(outcome).toEqual([expect.stringMatching(/^cannot rewrite the journal: no space left/)]);
    await second.close();
  });

  test('refuses an operation and changes nothing if the disk has no room for the journal', async () => {
    const dataDir = mount('data', '256k');
    agent = await startAgent(dataDir);
    await expect(
      agent.engine.accept(operation('apply', [file(`${home}/f`, { content: 'x'.repeat(500_000) })])),
    ).rejects.toThrow(/no space left/);
    expect(agent.engine.openOperations()).toEqual([]);
    const outcome = await agent.run(operation('apply', [file(`${home}/f`, { content: 'small' })]));
    expect(outcome.finished.status).toBe('succeeded');
    await agent.stop();
    agent = await startAgent(dataDir);
    expect(agent.engine.openOperations().length).toBe(1);
  });

  test('pauses an operation while the disk is full', async () => {
    const dataDir = mount('data', '256k');
    const errors: string[] = [];
    agent = await startAgent(dataDir, {
      log: { debug() {}, info() {}, warn() {}, error: (fields) => errors.push(JSON.stringify(fields)) },
      // Shortens the wait before a retry.
      clock: { ...systemClock, after: (ms, action) => systemClock.after(ms === 5000 ? 20 : ms, action) },
    });
    const fill = `${dataDir}/fill`;
    const free = () => {
      const { bavail, bsize } = statfsSync(dataDir);
      return bavail * bsize;
    };
    const long = operation('apply', [
      script('gate', {
        apply: `touch ${home}/runs; while ! test -e ${home}/go; do sleep 0.02; done; echo x >> ${home}/count; head -c 50000 /dev/urandom | base64`,
      }),
      file(`${home}/f`, { content: 'x' }),
    ]);
    await agent.engine.accept(long);
    await expect.poll(() => existsSync(`${home}/runs`)).toBe(true);
    writeFileSync(fill, Buffer.alloc(free()));
    writeFileSync(`${home}/go`, '');
    await expect.poll(() => existsSync(`${home}/count`)).toBe(true);
    await expect.poll(() => errors.length).toBeGreaterThan(0);
    expect(errors[0]).toContain('no space left');
    removeDirectory(fill);
    const outcome = await agent.ended(long.operation_id);
    expect(outcome.finished.status).toBe('succeeded');
    expect(outcome.outputs.length).toBe(1);
    expect(readFileSync(`${home}/count`, 'utf8')).toBe('x\n');
  });
});

const canFreeze = (() => {
  if (process.geteuid?.() !== 0) return false;
  const path = `/tmp/muster-chattr-${process.pid}`;
  writeFileSync(path, '');
  const frozen = spawnSync('chattr', ['+i', path]).status === 0;
  spawnSync('chattr', ['-i', path]);
  removeDirectory(path);
  return frozen;
})();

test.runIf(canFreeze)('leaves an immutable file unchanged, and names the attribute in the error', async () => {
  const path = `/tmp/muster-immutable-${process.pid}`;
  writeFileSync(path, 'old');
  spawnSync('chattr', ['+i', path]);
  try {
    agent = await startAgent(data());
    const outcome = await agent.run(operation('apply', [file(path, { content: 'new' })]));
    expect(outcome.results).toMatchObject([{ status: 'failed', message: expect.stringContaining('immutable') }]);
    expect(readFileSync(path, 'utf8')).toBe('old');
  } finally {
    spawnSync('chattr', ['-i', path]);
    removeDirectory(path);
  }
});
