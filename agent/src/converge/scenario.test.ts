import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from './test/agent.ts';
import { directory, file, operation, script } from './test/desired.ts';
import { snapshotTree } from './test/tree.ts';

describe('20 files, 5 directories and a script', () => {
  let home: string;
  let root: string;
  let agent: TestAgent;

  beforeEach(async () => {
    home = temporaryDirectory();
    root = `${home}/root`;
    mkdirSync(root);
    mkdirSync(`${home}/data`, { mode: 0o700 });
    agent = await startAgent(`${home}/data`);
  });
  afterEach(async () => {
    await agent.stop();
    removeDirectory(home);
  });

  const desired = () => {
    const directories = Array.from({ length: 5 }, (_, i) =>
      directory(`${root}/d${i}`, { mode: '0750' }, { id: `d${i}` }),
    );
    const files = Array.from({ length: 20 }, (_, i) =>
      file(
        `${root}/d${i % 5}/f${i}`,
        { content: `file ${i}\nline two\n`, mode: '0640' },
        { id: `f${i}`, depends_on: [`path:${root}/d${i % 5}`] },
      ),
    );
    const service = script(
      'service',
      {
        check: `test -e ${root}/started`,
        apply: `echo run >> ${root}/runs; touch ${root}/started; echo started`,
        undo: `rm -f ${root}/started ${root}/runs`,
      },
      { rerun_on: [files[0]!.key] },
    );
    return [...directories, ...files, service];
  };

  test('plans, applies, checks for drift, and removes 20 files, 5 directories, and a script', async ({ skip }) => {
    if (process.getuid?.() !== 0) skip('needs root, because only root can change the owner of a file');
    // The file and the directory exist before the first apply.
    mkdirSync(`${root}/d0`, { mode: 0o700 });
    writeFileSync(`${root}/d0/f0`, 'from before\n', { mode: 0o600 });
    chmodSync(`${root}/d0`, 0o700);
    chownSync(`${root}/d0/f0`, 1, 1);
    const before = snapshotTree(root);

    const planned = await agent.run(operation('plan', desired()));
    expect(planned.finished).toMatchObject({ status: 'succeeded', summary: { total: 26, changed: 26, failed: 0 } });
    expect(planned.results.find(({ id }) => id === 'f0')).toMatchObject({ action: 'update', status: 'would_change' });
    expect(planned.results.find(({ id }) => id === 'f0')?.diff).toContain('-from before\n+file 0\n+line two\n');
    expect(planned.results.find(({ id }) => id === 'f1')?.diff).toContain('@@ -0,0 +1,2 @@\n+file 1\n+line two\n');
    expect(planned.results.at(-1)).toMatchObject({ id: 'service', action: 'run', triggered_by: ['f0'] });
    expect(snapshotTree(root)).toEqual(before);

    const applied = await agent.run(operation('apply', desired()));
    expect(applied.finished).toMatchObject({ status: 'succeeded', summary: { total: 26, changed: 26 } });
    const essence = (results: typeof applied.results) =>
      results.map(({ identity, action, changes, diff }) => ({ identity, action, changes, diff }));
    expect(essence(applied.results)).toEqual(essence(planned.results));
    // Successful steps have no messages.
    expect(applied.results.filter(({ message }) => message !== null)).toEqual([]);
    expect(applied.outputs).toMatchObject([{ resource: 'site/service', stdout: 'started\n', exit_code: 0 }]);
    expect(readFileSync(`${root}/d1/f1`, 'utf8')).toBe('file 1\nline two\n');
    expect(statSync(`${root}/d1/f1`).mode & 0o7777).toBe(0o640);
    expect(statSync(`${root}/d0`).mode & 0o7777).toBe(0o750);

    const again = await agent.run(operation('plan', desired()));
    expect(again.finished.summary).toMatchObject({ total: 26, unchanged: 26, changed: 0 });

    writeFileSync(`${root}/d1/f1`, 'by hand\n');
    chmodSync(`${root}/d2/f2`, 0o777);
    chownSync(`${root}/d3/f3`, 2, 0);
    chmodSync(`${root}/d4`, 0o700);
    rmSync(`${root}/d4/f4`);
    const drifted = await agent.run(operation('drift', []));
    expect(drifted.finished).toMatchObject({ status: 'succeeded', summary: { total: 26, changed: 4, unchanged: 22 } });
    expect(drifted.results.map(({ id, changes }) => [id, changes.map(({ field }) => field)])).toEqual([
      ['d4', ['mode']],
      ['f1', ['content']],
      ['f2', ['mode']],
      ['f4', ['ensure', 'content', 'mode']],
    ]);
    const repaired = await agent.run(operation('apply', desired()));
    expect(repaired.finished.summary).toMatchObject({ changed: 4, unchanged: 22 });
    expect(repaired.results.filter(({ status }) => status === 'changed').every(({ corrective }) => corrective)).toBe(
      true,
    );
    expect(readFileSync(`${root}/runs`, 'utf8')).toBe('run\n');

    const shrunk = desired().filter(({ id }) => id === 'f1' || id === 'd1');
    const plannedShrink = await agent.run(operation('plan', shrunk));
    const shrink = await agent.run(operation('apply', shrunk));
    expect(essence(shrink.results)).toEqual(essence(plannedShrink.results));
    expect(shrink.finished).toMatchObject({ status: 'succeeded', summary: { total: 26, removed: 24, unchanged: 2 } });
    expect(existsSync(`${root}/started`)).toBe(false);
    expect(existsSync(`${root}/d2`)).toBe(false);
    await agent.run(operation('apply', []));
    expect(snapshotTree(root)).toEqual(before);
  });
});
