import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { describe, expect, onTestFinished, test } from 'vitest';
import { directory, file, operation } from '../../converge/test/desired.ts';
import { useAgent } from '../../converge/test/harness.ts';
import { snapshotTree } from '../../converge/test/tree.ts';
import { readAccounts } from '../../host/accounts/accounts.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import type { Machine } from '../provider/provider.ts';
import { belowChange, entriesBelow, rememberBelow, setBelow } from './below.ts';
import { directoryUnix } from './directory-unix.ts';

type Declared = ResolvedResource<'directory-unix'>;

const h = useAgent();
const [user, other] = [41_000, 41_001];
const at = (name: string): string => `${h.root}/${name}`;
const tree = (body: Parameters<typeof directory>[1] = {}) => directory(at('d'), { recursive: true, ...body });
const own = { owner: String(user), group: String(user) };
const run = (kind: 'plan' | 'apply', ...resources: ReturnType<typeof file>[]) =>
  h.agent.run(operation(kind, resources));
const apply = (...resources: ReturnType<typeof file>[]) => run('apply', ...resources);
const stateOf = (name: string): string => {
  const { uid, gid, mode } = statSync(at(name));
  return `${uid}:${gid} ${(mode & 0o7777).toString(8)}`;
};
function lay(name: string, uid = 0, mode = 0o644, content = 'theirs\n'): void {
  writeFileSync(at(name), content);
  chownSync(at(name), uid, uid);
  chmodSync(at(name), mode);
}
function layDirectory(name: string, uid = 0, mode = 0o755): void {
  mkdirSync(at(name));
  chownSync(at(name), uid, uid);
  chmodSync(at(name), mode);
}

describe('a directory with everything below', () => {
  test('shows each entry that differs, and repairs entries that are added later', async () => {
    layDirectory('d');
    lay('d/f');
    const { results } = await apply(tree({ ...own, file_mode: '0600' }));
    expect(results[0]?.changes.map(({ field }) => field)).toEqual(['owner', 'group', 'recursive']);
    expect(results[0]?.diff).toBe(` ${at('d/f')}: owner root → ${user}, group root → ${user}, mode 0644 → 0600\n`);
    lay('d/later');
    expect((await h.agent.run(operation('drift'))).results).toMatchObject([
      { changes: [{ field: 'recursive', from: '1 different entry below', to: 'as declared' }] },
    ]);
    await apply(tree({ ...own, file_mode: '0600' }));
    expect(stateOf('d/later')).toBe(`${user}:${user} 600`);
  });

  test('does not change entries that other resources declare, or directories that declare their own recursion', async () => {
    layDirectory('d');
    layDirectory('d/inner');
    lay('d/inner/f');
    lay('d/theirs');
    const resources = [
      tree(own),
      file(at('d/theirs'), { owner: String(other) }),
      directory(at('d/inner'), { recursive: true, owner: String(other) }),
    ];
    await apply(...resources);
    expect([stateOf('d/theirs'), stateOf('d/inner'), stateOf('d/inner/f')]).toEqual([
      ...[`${other}:0 644`, `${other}:0 755`, `${other}:0 644`],
    ]);
    expect((await apply(...resources)).results.map(({ status }) => status)).toEqual(Array(3).fill('unchanged'));
  });

  test('changes only the files that match, and restores them', async () => {
    layDirectory('d');
    layDirectory('d/sub');
    for (const name of ['a.key', 'a.crt', 'sub/b.key', 'sub/x']) lay(`d/${name}`);
    const { results } = await apply(tree({ only: ['*.key', '/sub/?'], file_mode: '0600', group: own.group }));
    expect(results[0]?.changes).toMatchObject([
      { field: 'group' },
      { field: 'recursive', from: '3 different entries below' },
    ]);
    expect(['d/a.key', 'd/sub/b.key', 'd/sub/x'].map(stateOf)).toEqual(Array(3).fill(`0:${user} 600`));
    expect(['d/a.crt', 'd/sub'].map(stateOf)).toEqual(['0:0 644', '0:0 755']);
    await apply();
    expect(['d/a.key', 'd/sub/b.key', 'd/sub/x'].map(stateOf)).toEqual(Array(3).fill('0:0 644'));
  });

  test('neither follows nor changes links', async () => {
    layDirectory('d');
    layDirectory('outside');
    lay('outside/f');
    symlinkSync(at('outside'), at('d/link'));
    symlinkSync(at('outside/f'), at('d/file-link'));
    await apply(tree({ ...own, mode: '0700', file_mode: '0600' }));
    expect([stateOf('outside'), stateOf('outside/f')]).toEqual(['0:0 755', '0:0 644']);
  });

  test('does not change mounted file systems, directories, or files', () => {
    layDirectory('d');
    layDirectory('outside');
    for (const name of ['d/other system', 'd/directory', 'd/same']) layDirectory(name);
    for (const name of ['outside/f', 'f', 'd/file', 'd/same/f']) lay(name);
    const mounts = `mount -t tmpfs tmpfs "$1/d/other system" && touch "$1/d/other system/f" &&
      mount --bind "$1/outside" "$1/d/directory" && mount --bind "$1/f" "$1/d/file" && shift && exec "$@"`;
    const program = `
      import { entriesBelow } from '${import.meta.dirname}/below.ts';
      import { readAccounts } from '${import.meta.dirname}/../../host/accounts/accounts.ts';
      import { PathWalk } from '${import.meta.dirname}/../../host/files/path-walk.ts';
      const machine = {
        ...{ walk: new PathWalk(), accounts: readAccounts(), warn() {} },
        ...{ manages: () => false, declaredDirectory: () => false, resourcesOf: () => [] },
      };
      const { entries: below } = entriesBelow(${JSON.stringify(tree(own))}, machine);
      console.log(JSON.stringify(below.map(({ path }) => path)));`;
    const node = [process.execPath, '--input-type=module', '-e', program];
    const listed = execFileSync('unshare', ['-m', 'sh', '-c', mounts, 'sh', h.root, ...node], { encoding: 'utf8' });
    expect(JSON.parse(listed)).toEqual([at('d/same'), at('d/same/f')]);
  });

  test('clears set-ID bits of files whose owner changes', async () => {
    layDirectory('d');
    lay('d/f', other, 0o4755);
    await apply(tree({ owner: String(user) }));
    expect(stateOf('d/f')).toBe(`${user}:${other} 755`);
  });

  test('refuses `only` without a field that applies to files', async () => {
    layDirectory('d');
    const { results } = await apply(tree({ only: ['*'], mode: '0700' }));
    expect(results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('`only` requires owner, group, or file_mode') },
    ]);
  });

  test('refuses set-ID bits for all files, system directories, and a declaration without owner, group, or mode', async () => {
    layDirectory('d');
    const messages = [];
    for (const each of [tree({ file_mode: '4755' }), directory('/etc', { recursive: true, ...own }), tree()])
      messages.push((await run('plan', each)).results[0]?.message);
    expect(messages).toEqual([
      expect.stringContaining('must not set a set-ID bit'),
      expect.stringContaining('is a system directory'),
      expect.stringContaining('requires owner, group, mode, or file_mode'),
    ]);
  });

  test('keeps the owner of a directory that another resource declares without recursion, but changes its entries', async () => {
    layDirectory('d');
    layDirectory('d/inner');
    lay('d/inner/f');
    const resources = [tree(own), directory(at('d/inner'), { owner: String(other) })];
    await apply(...resources);
    expect([stateOf('d/inner'), stateOf('d/inner/f')]).toEqual([`${other}:0 755`, `${user}:${user} 644`]);
    expect((await apply(...resources)).results.map(({ status }) => status)).toEqual(['unchanged', 'unchanged']);
  });

  test('reports the drift of a tree with too many entries to change', async () => {
    layDirectory('d');
    await apply(tree(own));
    for (let i = 0; i <= 5000; i++) writeFileSync(at(`d/${i}`), '');
    expect((await h.agent.run(operation('drift'))).results).toMatchObject([
      { changes: [{ field: 'recursive', from: 'at least 5001 different entries below', to: 'as declared' }] },
    ]);
  });

  test('refuses a tree with too many entries to change, and one that is too deep', async () => {
    layDirectory('d');
    for (let i = 0; i <= 5000; i++) writeFileSync(at(`d/${i}`), '');
    expect((await run('plan', tree(own))).results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('more than 5000 entries to change') },
    ]);
    layDirectory('deep');
    mkdirSync(at(`deep${'/x'.repeat(70)}`), { recursive: true });
    expect((await run('plan', directory(at('deep'), { recursive: true, ...own }))).results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('nested more than 64 deep') },
    ]);
  });
});

describe('trees that a user can change', () => {
  test('does not change the owner of a private root-owned file that was moved into the tree', async () => {
    layDirectory('d', user);
    lay('d/shadow', 0, 0o600, 'secret\n');
    const before = snapshotTree(h.root);
    for (const kind of ['plan', 'apply'] as const)
      expect((await run(kind, tree(own))).results).toMatchObject([
        { status: 'failed', message: expect.stringContaining('may have moved it') },
      ]);
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('does not change a file that has another hard link', async () => {
    layDirectory('d', user);
    lay('passwd');
    linkSync(at('passwd'), at('d/name'));
    expect((await run('apply', tree(own))).results).toMatchObject([
      { status: 'failed', message: expect.stringContaining('more than one hard link') },
    ]);
    expect(stateOf('passwd')).toBe('0:0 644');
  });

  /** A machine without an engine, so that the tree can change between the steps of an apply. */
  const bareMachine = (warnings: string[] = []) => {
    const machine = {
      ...{ walk: new PathWalk(), accounts: readAccounts(), changedDirectory() {} },
      ...{ manages: () => false, declaredDirectory: () => false, resourcesOf: () => [] },
      ...{ freshDirectories: new Set(), ourDirectories: new Set() },
      warn: (message: string) => warnings.push(message),
    };
    onTestFinished(() => machine.walk.close());
    return machine as unknown as Machine;
  };

  test('changes the innermost entries first, and the directory itself last', async () => {
    layDirectory('d');
    layDirectory('d/sub');
    for (const name of ['d/sub/f', 'd/f']) lay(name);
    const declared = tree(own) as Declared;
    const changed: string[] = [];
    const names = ['d', 'd/sub', 'd/sub/f', 'd/f'];
    // Each change opens its parent directory.
    const note = () =>
      changed.push(...names.filter((name) => statSync(at(name)).uid === user && !changed.includes(name)));
    class NotedWalk extends PathWalk {
      override open(path: string, missing: 'make' | 'null') {
        note();
        return super.open(path, missing as 'null') as never;
      }
    }
    const walk = new NotedWalk();
    onTestFinished(() => walk.close());
    const machine = { ...bareMachine(), walk, declared: () => false } as Machine;
    const seen = await directoryUnix.observe(declared, {} as never, machine);
    await directoryUnix.apply(declared, seen, {} as never, machine);
    note();
    expect(changed).toEqual(['d/sub/f', 'd/sub', 'd/f', 'd']);
  });

  test('does not change entries that were replaced after the observation, but changes the others', async () => {
    layDirectory('d', user);
    layDirectory('d/sub', user);
    for (const name of ['d/sub/f', 'd/gone', 'd/kept']) lay(name, other);
    const warnings: string[] = [];
    const machine = bareMachine(warnings);
    const { walk } = machine;
    const { entries: below } = entriesBelow(tree({ owner: String(user), mode: '0700' }) as Declared, machine);
    expect(below.map(({ path }) => path)).toEqual(['d/gone', 'd/kept', 'd/sub', 'd/sub/f'].map(at));
    walk.forget();
    renameSync(at('d/sub'), at('d/moved'));
    symlinkSync(h.root, at('d/sub'));
    lay('f', other);
    unlinkSync(at('d/gone'));
    expect(await setBelow(below, machine)).toBe(2);
    expect(warnings.join()).toContain('it is not followed');
    expect(stateOf('d/kept')).toBe(`${user}:${other} 644`);
    unlinkSync(at('d/sub'));
    layDirectory('d/sub', user);
    lay('d/sub/f', other);
    walk.forget();
    expect(await setBelow(below, machine)).toBe(3);
    expect(stateOf('d/sub')).toBe(`${user}:${user} 755`);
    expect([stateOf('f'), stateOf('d/moved/f'), stateOf('d/sub/f')]).toEqual(Array(3).fill(`${other}:${other} 644`));
  });

  test('warns about names that are not UTF-8, and escapes control characters', () => {
    layDirectory('d', user);
    writeFileSync(Buffer.concat([Buffer.from(at('d/x')), Buffer.from([0xff])]), '');
    lay('d/a\u001b[2J\nb');
    const warnings: string[] = [];
    const machine = bareMachine(warnings);
    const below = entriesBelow(tree({ owner: String(user) }) as Declared, machine);
    expect(warnings).toEqual([expect.stringContaining('its name is not UTF-8')]);
    expect(belowChange(below, [], { purpose: 'drift' }).diff).toBe(` ${at('d/a\\x1b[2J\\nb')}: owner root → ${user}\n`);
  });

  test('reports in a plan that the entries are unknown until the owner exists', () => {
    layDirectory('d');
    lay('d/f');
    const below = entriesBelow(tree({ owner: 'later-account' }) as Declared, bareMachine());
    const to = 'unknown until the owner and group exist';
    expect(belowChange(below, [], { purpose: 'plan' }).changes).toEqual([{ field: 'recursive', from: null, to }]);
    expect(belowChange(below, [], { purpose: 'drift' }).changes).toEqual([]);
  });

  test('records no hash for files that change or vanish before they are read', async () => {
    layDirectory('d');
    for (const name of ['d/log', 'd/gone', 'd/same']) lay(name);
    const warnings: string[] = [];
    const machine = bareMachine(warnings);
    const { entries: below } = entriesBelow(tree(own) as Declared, machine);
    appendFileSync(at('d/log'), 'more\n');
    unlinkSync(at('d/gone'));
    const { below: records = [] } = await rememberBelow(below, {}, machine);
    expect(warnings).toEqual([expect.stringContaining('2 files changed while they were read')]);
    expect(
      records.map((each) => (each.is === 'file' && each.before.was === 'file' ? each.before.states : null)),
    ).toEqual([[], [], [expect.objectContaining({ size: 7 })]]);
    expect(await setBelow(below, machine)).toBe(0);
    expect([stateOf('d/log'), stateOf('d/same')]).toEqual(Array(2).fill(`${user}:${user} 644`));
  });
});

describe('the removal of a directory with everything below', () => {
  test('keeps the owner of files whose content has changed, and reports this', async () => {
    layDirectory('d');
    lay('d/log');
    lay('d/same');
    await apply(tree(own));
    writeFileSync(at('d/log'), 'written by the user\n');
    const { results, finished } = await apply();
    expect(finished.status).toBe('succeeded');
    expect(results[0]?.message).toContain('1 entry below stay as they are, because their content has changed');
    expect([stateOf('d'), stateOf('d/same'), stateOf('d/log')]).toEqual(['0:0 755', '0:0 644', `${user}:${user} 644`]);
    expect(readFileSync(at('d/log'), 'utf8')).toBe('written by the user\n');
  });

  test('restores the mode of a directory whose owner is declared after its mode', async () => {
    layDirectory('d', other, 0o2755);
    await apply(directory(at('d'), { mode: '0700' }));
    await apply(directory(at('d'), { mode: '0700', owner: String(user) }));
    await apply();
    expect(stateOf('d')).toBe(`${other}:${other} 2755`);
  });

  test('does not change new entries, and ignores entries that were removed', async () => {
    layDirectory('d');
    lay('d/f');
    await apply(tree(own));
    renameSync(at('d/f'), at('d/renamed'));
    expect((await apply()).finished.status).toBe('succeeded');
    expect([stateOf('d'), stateOf('d/renamed')]).toEqual(['0:0 755', `${user}:${user} 644`]);
  });

  test('drops the records of removed entries, and counts changes that exceed the number of records', async () => {
    layDirectory('d');
    const fill = (prefix: string, count: number): void => {
      for (let i = 0; i < count; i++) writeFileSync(at(`d/${prefix}${i}`), '');
    };
    const counted = async () => (await run('plan')).results[0]?.message;
    const grouped = tree({ group: String(user) });
    fill('a', 4999);
    await apply(grouped);
    rmSync(at('d'), { recursive: true });
    layDirectory('d');
    fill('b', 4999);
    expect((await apply(grouped)).finished.status).toBe('succeeded');
    expect(await counted()).not.toContain('not restored');
    fill('c', 3);
    expect((await apply(grouped)).finished.status).toBe('succeeded');
    expect(await counted()).toContain('2 changes below are not restored');
  });
});
