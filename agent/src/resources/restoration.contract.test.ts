import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { directory, file, operation, script } from '../converge/test/desired.ts';
import { useAgent } from '../converge/test/harness.ts';
import { snapshotTree } from '../converge/test/tree.ts';

const h = useAgent();
const apply = async (...resources: ResolvedResource[]) => {
  const outcome = await h.agent.run(operation('apply', resources));
  expect(outcome.finished.status, outcome.finished.error ?? '').toBe('succeeded');
  return outcome.results;
};
const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8);

describe('restoration of private files and directories', () => {
  const key = () => `${h.root}/key`;
  const prepareKey = () => {
    writeFileSync(key(), 'secret\n');
    chmodSync(key(), 0o600);
  };

  test('restores the permissions of a file that was deleted and created again', async () => {
    prepareKey();
    const before = snapshotTree(h.root);
    await apply(file(key(), { content: 'ours\n' }));
    rmSync(key());
    await apply(file(key(), { content: 'ours\n' }));
    expect(modeOf(key())).toBe('644');
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('restores a file that was declared absent and then present again', async () => {
    prepareKey();
    const before = snapshotTree(h.root);
    await apply(file(key(), { content: 'ours\n' }));
    await apply(file(key(), { ensure: 'absent' }));
    await apply(file(key(), { content: 'again\n' }));
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('restores a deleted file with the permissions that an operator had tightened', async () => {
    prepareKey();
    chmodSync(key(), 0o644);
    await apply(file(key(), { content: 'ours\n' }));
    chmodSync(key(), 0o600);
    await apply(file(key(), { ensure: 'absent' }));
    await apply();
    expect([modeOf(key()), readFileSync(key(), 'utf8')]).toEqual(['600', 'secret\n']);
  });

  test('restores the permissions of a directory that was removed and created again', async () => {
    const path = `${h.root}/d`;
    mkdirSync(path);
    chmodSync(path, 0o700);
    const before = snapshotTree(h.root);
    await apply(directory(path, { ensure: 'absent' }));
    await apply(directory(path));
    rmdirSync(path);
    await apply(directory(path));
    expect(modeOf(path)).toBe('755');
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
  });
});

describe('a created parent directory', () => {
  test('keeps a parent directory that the same apply declares', async () => {
    const c = `${h.root}/c`;
    await apply(file(`${c}/d/j`), directory(c));
    const planned = await h.agent.run(operation('plan', [directory(`${c}/d`)]));
    const applied = await apply(directory(`${c}/d`));
    expect(existsSync(`${c}/d`)).toBe(true);
    const essence = (results: typeof applied) => results.map(({ identity, action }) => [identity, action]);
    expect(essence(applied)).toEqual(essence(planned.results));
    await apply();
    expect(existsSync(c)).toBe(false);
  });
});

describe('an object that was as declared before the first apply', () => {
  test('restores the original state of a file that is no longer declared, even after corrected drift', async () => {
    const [g, hh, d] = [`${h.root}/g`, `${h.root}/h`, `${h.root}/d`];
    for (const path of [g, hh]) writeFileSync(path, 'good\n');
    mkdirSync(d);
    const before = snapshotTree(h.root);
    const desired = [
      file(g, { content: 'good\n' }),
      file(hh, { content: 'good\n' }),
      directory(d),
      script('s', { check: `test -e ${h.root}.there`, apply: `touch ${h.root}.there`, undo: `rm ${h.root}.there` }),
    ];
    writeFileSync(`${h.root}.there`, '');
    await apply(...desired);
    writeFileSync(g, 'BAD\n');
    rmSync(hh);
    rmdirSync(d);
    rmSync(`${h.root}.there`);
    await apply(...desired);
    expect(snapshotTree(h.root)).toEqual(before);
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
    expect(existsSync(`${h.root}.there`)).toBe(true);
  });

  test('restores the original content unless the file had drifted before the change', async () => {
    const [g, hh] = [`${h.root}/g`, `${h.root}/h`];
    for (const path of [g, hh]) writeFileSync(path, 'good\n');
    await apply(file(g, { content: 'good\n' }), file(hh, { content: 'good\n' }));
    writeFileSync(hh, 'BAD\n');
    await apply(file(g, { content: 'new\n' }), file(hh, { content: 'new\n' }));
    await apply();
    expect([readFileSync(g, 'utf8'), readFileSync(hh, 'utf8')]).toEqual(['good\n', 'new\n']);
  });
});

describe('leftovers of a removal', () => {
  test('removes the parent directories that it created once the file is declared absent', async () => {
    const before = snapshotTree(h.root);
    const path = `${h.root}/c/d/j`;
    await apply(file(path));
    await apply(file(path, { ensure: 'absent' }));
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('removes the parent directories that it created if the file was deleted manually', async () => {
    const before = snapshotTree(h.root);
    await apply(file(`${h.root}/c/d/j`));
    rmSync(`${h.root}/c/d/j`);
    await apply();
    expect(snapshotTree(h.root)).toEqual(before);
  });

  test('deletes the stored copy of a file after its restoration', async () => {
    const copies = () => readdirSync(`${h.dataDir}/state/before`).length;
    for (const name of ['a', 'b']) writeFileSync(`${h.root}/${name}`, `secret ${name}\n`);
    const [a, b] = ['a', 'b'].map((name) => file(`${h.root}/${name}`, { content: 'ours\n' })) as [
      ResolvedResource,
      ResolvedResource,
    ];
    await apply(a, b);
    expect(copies()).toBe(2);
    await apply(b);
    await expect.poll(copies).toBe(1);
    await apply();
    await expect.poll(copies).toBe(0);
    expect(readFileSync(`${h.root}/b`, 'utf8')).toBe('secret b\n');
  });
});
