import {
  chmodSync,
  chownSync,
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { startAgent } from '../converge/test/agent.ts';
import { block, directory, file, line, operation } from '../converge/test/desired.ts';
import { useAgent } from '../converge/test/harness.ts';
import { snapshotTree } from '../converge/test/tree.ts';

/**
 * Content that a user can write to a file of their own must never run as another user, no matter how the agent changes
 * the file.
 */

const h = useAgent();
const user = 41_000;
const other = 41_001;

/** Creates a file with the given content, owner, and mode. */
function lay(name: string, content: string, uid: number, mode: number, gid = uid): string {
  const path = `${h.root}/${name}`;
  writeFileSync(path, content);
  chownSync(path, uid, gid);
  chmodSync(path, mode);
  return path;
}
/** Replaces the file with a program, as the user. */
function plant(path: string, mode = 0o4755, uid = user): void {
  writeFileSync(path, 'evil\n');
  chownSync(path, uid, uid);
  chmodSync(path, mode);
}
const stateOf = (path: string): string => {
  const { uid, gid, mode } = statSync(path);
  return `${uid}:${gid} ${(mode & 0o7777).toString(8).padStart(4, '0')}`;
};

const essence = (results: ResourceResult[]) =>
  results.map(({ identity, action, changes, diff }) => ({ identity, action, changes, diff }));

/** Plans and applies, expects equal results, and applies again, which must change nothing. */
async function apply(...resources: ResolvedResource[]): Promise<ResourceResult[]> {
  const before = snapshotTree(h.root);
  const planned = await h.agent.run(operation('plan', resources));
  expect(snapshotTree(h.root)).toEqual(before);
  const applied = await h.agent.run(operation('apply', resources));
  expect(applied.finished.status, applied.results.map(({ message }) => message).join('\n')).toBe('succeeded');
  expect(essence(applied.results)).toEqual(essence(planned.results));
  const after = snapshotTree(h.root);
  const again = await h.agent.run(operation('apply', resources));
  expect(again.results.filter(({ status }) => status !== 'unchanged')).toEqual([]);
  expect(snapshotTree(h.root)).toEqual(after);
  return applied.results;
}

/** Removes every resource, and expects the plan and the apply to fail and to change nothing. */
async function refused(message: RegExp): Promise<void> {
  const before = snapshotTree(h.root);
  const planned = await h.agent.run(operation('plan'));
  const applied = await h.agent.run(operation('apply'));
  for (const { results } of [planned, applied])
    expect(results).toMatchObject([{ status: 'failed', message: expect.stringMatching(message) }]);
  expect(snapshotTree(h.root)).toEqual(before);
}

const changesOf = ([result]: ResourceResult[]) =>
  result?.changes.map(({ field, from, to }) => `${field} ${from} ${to}`);

describe.runIf(process.geteuid?.() === 0)('a set-user-ID or set-group-ID bit that was found', () => {
  test('clears a set-user-ID bit when the owner changes', async () => {
    const path = lay('tool', 'evil\n', user, 0o4755);
    const results = await apply(file(path, { owner: 'root' }));
    expect(changesOf(results)).toEqual([`owner ${user} root`, 'mode 4755 0755']);
    expect(stateOf(path)).toBe('0:41000 0755');
  });

  test('clears a set-group-ID bit when the group changes', async () => {
    const path = lay('tool', 'evil\n', user, 0o2755);
    const results = await apply(file(path, { group: 'root' }));
    expect(changesOf(results)).toEqual([`group ${user} root`, 'mode 2755 0755']);
    expect(stateOf(path)).toBe('41000:0 0755');
  });

  test('clears a set-user-ID bit when it corrects drift', async () => {
    const path = lay('tool', 'good\n', 0, 0o755);
    await apply(file(path, { owner: 'root' }));
    plant(path);
    const drift = await h.agent.run(operation('drift'));
    expect(drift.results.map(({ changes }) => changes.map(({ field }) => field))).toEqual([['owner', 'mode']]);
    await apply(file(path, { owner: 'root' }));
    expect(statSync(path).mode & 0o6000).toBe(0);
  });

  test('clears set-ID bits and write permissions of group and others when it replaces the content', async () => {
    const path = lay('tool', 'evil\n', user, 0o6777);
    const results = await apply(file(path, { content: 'ours\n' }));
    expect(changesOf(results)).toContain('mode 6777 0755');
    expect(stateOf(path)).toBe('41000:41000 0755');
  });

  test('clears set-ID bits when only the owner of a declared file changes', async () => {
    const path = lay('tool', 'ours\n', user, 0o6777);
    const openFd = openSync(path, 'r+');
    await apply(file(path, { content: 'ours\n', owner: 'root', group: 'root' }));
    expect(stateOf(path)).toBe('0:0 0755');
    // The previous owner still has the replaced file open.
    writeSync(openFd, 'evil\n', 0);
    closeSync(openFd);
    expect(readFileSync(path, 'utf8')).toBe('ours\n');
  });

  test.each([
    ['a line', (path: string) => line(path, 'a = 1')],
    ['a block', (path: string) => block(path, 'm', { content: 'a = 1\n' })],
  ])('clears set-ID bits when it adds %s, and keeps other permissions', async (_, make) => {
    const path = lay('tool', 'evil\n', user, 0o6775);
    const results = await apply(make(path));
    expect(changesOf(results)).toContain('mode 6775 0775');
    expect(stateOf(path)).toBe('41000:41000 0775');
    chmodSync(path, 0o6775);
    expect(changesOf(await apply())).toContain('mode 6775 0775');
    expect(stateOf(path)).toBe('41000:41000 0775');
  });

  test('keeps set-ID bits if only other permissions change, or `mode` declares them', async () => {
    const own = lay('own', 'ours\n', 0, 0o4755);
    await apply(file(own, { content: 'new\n' }));
    expect(stateOf(own)).toBe('0:0 4755');
    const declared = lay('declared', 'theirs\n', user, 0o755);
    await apply(file(own, { content: 'new\n' }), file(declared, { content: 'ours\n', owner: 'root', mode: '4755' }));
    expect(stateOf(declared)).toBe('0:41000 4755');
  });

  test.each(['4755', '0755'])(
    'replaces a file that may be open for writing instead of changing its mode in place: mode %s',
    async (mode) => {
      const path = lay('tool', 'ours\n', 0, 0o666);
      const openFd = openSync(path, 'r+');
      await apply(file(path, { content: 'ours\n', mode }));
      expect(stateOf(path)).toBe(`0:0 ${mode}`);
      writeSync(openFd, 'evil\n', 0);
      closeSync(openFd);
      expect(readFileSync(path, 'utf8')).toBe('ours\n');
    },
  );

  test('keeps the set-group-ID bit on a directory', async () => {
    const path = `${h.root}/d`;
    mkdirSync(path);
    chownSync(path, user, user);
    chmodSync(path, 0o2775);
    await apply(directory(path, { owner: 'root', group: 'daemon' }));
    expect(statSync(path).mode & 0o7777).toBe(0o2775);
  });
});

describe.runIf(process.geteuid?.() === 0)('a file that is given back', () => {
  test('restores the owner and mode of a file whose original owner is restored', async () => {
    const path = lay('tool', 'good\n', 0, 0o755);
    const before = snapshotTree(h.root);
    await apply(file(path, { owner: String(user) }));
    chmodSync(path, 0o4777);
    expect(changesOf(await apply())).toEqual([`owner ${user} root`, 'mode 4777 0755']);
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('restores a set-user-ID bit if the content is the same', async () => {
    const path = lay('tool', 'good\n', 0, 0o6755);
    const before = snapshotTree(h.root);
    await apply(file(path, { owner: String(user) }));
    expect(stateOf(path)).toBe('41000:0 0755');
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
    await apply(file(path, { content: 'ours\n', owner: String(user), mode: '0700' }));
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('refuses to restore the owner of a changed file until an operator decides', async () => {
    const path = lay('tool', 'good\n', 0, 0o755);
    await apply(file(path, { owner: String(user) }));
    plant(path);
    await refused(/tool.*content.*chown 0:0/s);
    expect(stateOf(path)).toBe('41000:41000 4755');
    chownSync(path, 0, 0);
    await apply();
    expect(stateOf(path)).toBe('0:0 0755');
  });

  test('refuses to restore the owner of a file that changed before a module replaced it', async () => {
    const path = lay('tool', 'good\n', 0, 0o4755);
    await apply(file(path, { owner: String(user) }));
    plant(path, 0o755);
    await apply(file(path, { owner: String(user), content: 'ours\n' }));
    await refused(/tool.*content/s);
    await apply(file(path, { ensure: 'absent' }));
    await refused(/tool.*content/s);
    // The remedy: an operator manually creates the file for its previous owner.
    lay('tool', 'by hand\n', 0, 0o755);
    await apply();
    expect([readFileSync(path, 'utf8'), stateOf(path)]).toEqual(['by hand\n', '0:0 0755']);
  });

  test('refuses to change the owner of a file to a user who did not write its content', async () => {
    const path = lay('tool', 'good\n', other, 0o755);
    await apply(file(path, { owner: String(user) }));
    plant(path, 0o755);
    await refused(/tool.*content/s);
  });

  test('does not restore the set-user-ID bit on a file whose content root changed', async () => {
    const path = lay('tool', 'theirs\n', user, 0o4755);
    await apply(file(path, { owner: 'root' }));
    writeFileSync(path, 'of root\n');
    chmodSync(path, 0o4755);
    await apply();
    expect(stateOf(path)).toBe('41000:41000 0755');
  });

  test('does not restore the set-user-ID bit on a file that others changed', async () => {
    const path = lay('tool', 'good\n', 0, 0o4755);
    await apply(file(path, { mode: '0666' }));
    writeFileSync(path, 'evil\n');
    const [result] = await apply();
    expect(stateOf(path)).toBe('0:0 0755');
    expect(result?.message).toMatch(/set-user-ID/);
  });

  test('restores a set-user-ID bit on a new file, because the old one may be open', async () => {
    const path = lay('tool', 'good\n', 0, 0o4755);
    await apply(file(path, { mode: '0666' }));
    const openFd = openSync(path, 'r+');
    await apply();
    expect(stateOf(path)).toBe('0:0 4755');
    // A write through a shared mapping does not clear the bit.
    writeSync(openFd, 'evil\n', 0);
    closeSync(openFd);
    expect(readFileSync(path, 'utf8')).toBe('good\n');
  });

  test('restores the content to a new file, for which the previous owner has no open descriptor', async () => {
    const path = lay('tool', 'good\n', 0, 0o755);
    await apply(file(path, { owner: String(user) }));
    const openFd = openSync(path, 'r+');
    await apply();
    writeSync(openFd, 'evil\n', 0);
    closeSync(openFd);
    expect([readFileSync(path, 'utf8'), stateOf(path)]).toEqual(['good\n', '0:0 0755']);
  });

  test('refuses to restore the owner of a file that is too large to be recorded', async () => {
    const path = lay('tool', '', 0, 0o644);
    truncateSync(path, 257 * 1024 * 1024);
    await h.agent.run(operation('apply', [file(path, { owner: String(user) })]));
    for (const kind of ['plan', 'apply'] as const)
      expect((await h.agent.run(operation(kind))).results).toMatchObject([
        { status: 'failed', message: expect.stringMatching(/tool.*content/s) },
      ]);
    expect(stateOf(path)).toBe('41000:0 0644');
  });
});

describe.runIf(process.geteuid?.() === 0)('a directory that is given back', () => {
  test('restores the owner and mode of a directory whose original owner is restored', async () => {
    const path = `${h.root}/d`;
    mkdirSync(path, { mode: 0o755 });
    const before = snapshotTree(h.root);
    await apply(directory(path, { owner: String(user) }));
    chmodSync(path, 0o2777);
    expect(changesOf(await apply())).toEqual([`owner ${user} root`, 'mode 2777 0755']);
    expect(snapshotTree(h.root)).toEqual(before);
  });
});

test.runIf(process.geteuid?.() === 0)(
  'applies and restores a file and a line resource for it in either order',
  async () => {
    for (const [from, to] of [
      [user, 'root'],
      [0, String(user)],
    ] as const)
      for (const isLineFirst of [true, false]) {
        const path = lay('conf', 'a\n', from, 0o664);
        const before = snapshotTree(h.root);
        const both = [line(path, 'b'), file(path, { owner: to, mode: '0600' })];
        const results = async (...resources: ResolvedResource[]) => {
          const set = isLineFirst ? resources : resources.toReversed();
          const outcome = await h.agent.run(operation('apply', set));
          return outcome.results.map(({ status, message }) => (status === 'failed' ? message : status));
        };
        expect(await results(...both)).toEqual(['changed', 'changed']);
        expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o7777]).toEqual(['a\nb\n', 0o600]);
        expect(await results(...both)).toEqual(['unchanged', 'unchanged']);
        expect(await results(), `${from} ${isLineFirst}`).toEqual(['changed', 'changed']);
        expect(snapshotTree(h.root)).toEqual(before);
      }
  },
);

describe.runIf(process.geteuid?.() === 0)(
  'what only root can read, in a directory of a user who may have moved it there',
  () => {
    const home = () => `${h.root}/home`;
    const secret = () => lay('home/secret', 'of root\n', 0, 0o600);
    /** Moves one of root's files to the managed path, as the user could. */
    const move = (path: string) => renameSync(secret(), path);
    beforeEach(() => {
      mkdirSync(home());
      chownSync(home(), user, user);
    });
    async function isRefused(...resources: ResolvedResource[]): Promise<void> {
      const before = snapshotTree(h.root);
      for (const kind of ['plan', 'apply'] as const)
        expect((await h.agent.run(operation(kind, resources))).results).toMatchObject([
          { status: 'failed', message: expect.stringMatching(/home\/log.*root.*(chown|chmod)/s) },
        ]);
      expect(snapshotTree(h.root)).toEqual(before);
    }

    test.each([
      ['the owner', { owner: String(user) }],
      ['the group', { group: String(user), mode: '0640' }],
      ['the mode', { mode: '0644' }],
    ])("refuses a change to %s that would expose one of root's files", async (_, body) => {
      const path = `${home()}/log`;
      move(path);
      await isRefused(file(path, body));
    });

    test("refuses to expose one of root's files when it corrects drift", async () => {
      const path = lay('home/log', 'mine\n', user, 0o644);
      await apply(file(path, { owner: String(user), mode: '0640' }));
      move(path);
      const drift = await h.agent.run(operation('drift'));
      expect(drift.results.map(({ changes }) => changes.map(({ field }) => field))).toEqual([['owner', 'mode']]);
      await isRefused(file(path, { owner: String(user), mode: '0640' }));
    });

    test("changes one of root's files if the file stays private or its content is declared", async () => {
      const path = `${home()}/log`;
      move(path);
      await apply(file(path, { mode: '0400' }));
      await apply(file(path, { owner: String(user), content: 'ours\n' }));
      expect([readFileSync(path, 'utf8'), stateOf(path)]).toEqual(['ours\n', '41000:0 0400']);
      const empty = lay('home/empty', '', 0, 0o600);
      await apply(file(empty, { owner: String(user) }));
    });

    test("refuses to give one of root's files to the previous owner of another file", async () => {
      const path = lay('home/log', 'theirs\n', user, 0o644);
      await apply(file(path, { owner: 'root', mode: '0600' }));
      const before = snapshotTree(h.root);
      await apply();
      expect(stateOf(path)).toBe('41000:41000 0644');
      await apply(file(path, { owner: 'root', mode: '0600' }));
      expect(snapshotTree(h.root)).toEqual(before);
      move(path);
      await isRefused();
      // Expects the same refusal after a module has replaced the file.
      await apply(file(path, { owner: 'root', mode: '0600', content: 'ours\n' }));
      await isRefused();
    });

    test("refuses to restore root's content into another user's file", async () => {
      const path = `${home()}/log`;
      move(path);
      await apply(file(path, { content: 'ours\n' }));
      rmSync(path);
      lay('home/log', 'mine\n', user, 0o644);
      await isRefused();
      rmSync(path);
      await apply();
      expect([readFileSync(path, 'utf8'), stateOf(path)]).toEqual(['of root\n', '0:0 0600']);
    });

    test("refuses to expose one of root's directories", async () => {
      const path = `${home()}/log`;
      mkdirSync(path, { mode: 0o700 });
      await apply(directory(path, { owner: String(user) }));
      await apply(directory(path, { owner: 'root', mode: '0700' }));
      writeFileSync(`${path}/secret`, 'of root\n');
      await isRefused(directory(path, { owner: String(user) }));
      await isRefused(directory(path, { mode: '0755' }));
      await apply();
      rmSync(path, { recursive: true });
      mkdirSync(path);
      chownSync(path, user, user);
      await apply(directory(path, { owner: 'root', mode: '0700' }));
      writeFileSync(`${path}/secret`, 'of root\n');
      await apply();
      expect(stateOf(path)).toBe('41000:41000 0755');
      await apply(directory(path, { owner: 'root', mode: '0700' }));
      renameSync(path, `${home()}/away`);
      mkdirSync(path, { mode: 0o700 });
      writeFileSync(`${path}/secret`, 'of root\n');
      await isRefused();
    });
  },
);

/** Declarations of the file to choose from. */
const bodies = [
  { owner: String(user) },
  { owner: 'root' },
  { owner: String(user), content: 'ours\n' },
  { content: 'ours\n' },
  { owner: String(user), group: String(user), mode: '0640' },
  { mode: '0600' },
  { ensure: 'absent' as const },
  null,
];
/** Changes that the user can make to a file of their own in another user's directory. */
const deeds: ((path: string) => void)[] = [
  () => {},
  (path) => writeFileSync(path, 'evil\n'),
  (path) => chmodSync(path, 0o4755),
  (path) => chmodSync(path, 0o6666),
  (path) => {
    chownSync(path, user, user);
    chmodSync(path, 0o2775);
  },
];

test.runIf(process.geteuid?.() === 0)(
  "never lets a user write to one of root's files, and never writes that user's content to one of root's files",
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ body: fc.constantFrom(...bodies), deeds: fc.array(fc.constantFrom(...deeds), { maxLength: 3 }) }),
          { maxLength: 6 },
        ),
        fc.constantFrom(0o644, 0o664, 0o4755, 0o6755),
        async (steps, mode) => {
          const path = lay('tool', 'good\n', 0, mode);
          const dataDir = mkdtempSync(`${h.root}/data-`);
          const agent = await startAgent(dataDir);
          for (const { body, deeds: done } of [...steps, { body: null, deeds: [] }]) {
            const set = body === null ? [] : [file(path, body)];
            const outcome = await agent.run(operation('apply', set));
            const failed = outcome.results.filter(({ status }) => status === 'failed');
            for (const { message } of failed) expect(message).toMatch(/is not (restored|created again)/);
            const found = lstatSync(path, { throwIfNoEntry: false });
            const content = found === undefined ? null : readFileSync(path, 'utf8');
            // The module declares root as the owner but no content, so the content may be the user's.
            const isRootDeclared = body?.owner === 'root';
            if (found?.uid === 0) {
              if (content === 'evil\n') expect([isRootDeclared, found.mode & 0o6000]).toEqual([true, 0]);
              if (found.gid === user && !isRootDeclared) expect(found.mode & 0o020).toBe(0);
              if (!isRootDeclared) expect(found.mode & 0o002).toBe(0);
              if (isRootDeclared && (content === 'evil\n' || (found.mode & 0o022) !== 0)) break;
            } else if (found?.uid === user) for (const deed of done) deed(path);
          }
          await agent.stop();
          for (const one of [path, dataDir]) rmSync(one, { recursive: true, force: true });
        },
      ),
      { numRuns: 100, endOnFailure: true },
    );
  },
);
