import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampled } from '../../../lib/test/sampled.ts';
import { type Reported, removeDirectory, startAgent, temporaryDirectory } from './test/agent.ts';
import { directory, file, operation, script } from './test/desired.ts';
import { killedOff } from './test/killed.ts';
import { snapshotTree } from './test/tree.ts';

let home: string;
let root: string;
let dataDir: string;
const fresh = () => {
  home = temporaryDirectory();
  root = `${home}/root`;
  dataDir = `${home}/data`;
  mkdirSync(root);
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(`${root}/there`, 'old\n', { mode: 0o600 });
  chmodSync(`${root}/there`, 0o600);
};
beforeEach(fresh);
afterEach(() => removeDirectory(home));

const temporaries = (path: string): string[] =>
  readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.muster-'));

const first = () => [
  directory(`${root}/d`, { mode: '0711' }),
  file(`${root}/there`, { content: 'new\n', mode: '0644' }, { id: 'there' }),
  file(`${root}/made/deep/f`, { content: 'f\n' }),
  script(
    'checked',
    { check: `test -e ${root}/checked`, apply: `echo x >> ${root}/checked`, undo: `rm ${root}/checked` },
    { depends_on: [`path:${root}/d`] },
  ),
  script(
    'triggered',
    { apply: `echo x >> ${root}/triggered`, undo: `rm ${root}/triggered` },
    { rerun_on: [`path:${root}/there`] },
  ),
  file(`${root}/d/last`, { content: 'last\n' }),
];

/**
 * Verifies the state after the agent was killed: the operation finished exactly once, each step ran exactly once, and
 * no resource is in a mixed state.
 */
function expectComplete(reported: Reported, died: string): void {
  expect(reported.results.length, died).toBe(6);
  const triggered = reported.results.find(({ id }) => id === 'triggered');
  const ran = existsSync(`${root}/triggered`) ? readFileSync(`${root}/triggered`, 'utf8') : '';
  if (triggered?.status === 'unknown') {
    expect(reported.finished.status, died).toBe('failed');
    expect(['', 'x\n'], died).toContain(ran);
  } else {
    expect(reported.finished.status, died).toBe('succeeded');
    expect(triggered, died).toMatchObject({ action: 'run', status: 'changed', triggered_by: ['there'] });
    expect(ran, died).toBe('x\n');
  }
  for (const result of reported.results)
    if (result !== triggered) expect(result.status, `${died} ${result.identity}`).toBe('changed');
  expect(readFileSync(`${root}/checked`, 'utf8'), died).toBe('x\n');
  expect(readFileSync(`${root}/there`, 'utf8'), died).toBe('new\n');
  expect(statSync(`${root}/d`).mode & 0o7777, died).toBe(0o711);
  expect(temporaries(root), died).toEqual([]);
}

const stepsOf = (total: number) =>
  sampled(
    Array.from({ length: total }, (_, i) => i + 1),
    4,
  );

describe('an agent that is killed at a durable step', () => {
  test('finishes an apply that is killed at any step, and can restore the original state', async () => {
    const steps = await killedOff(dataDir, [operation('apply', first())], 0);
    expect(steps.points.at(-1)).toBe('done');
    const total = steps.points.length - 1;
    expect(total).toBeGreaterThan(20);
    removeDirectory(home);
    for (const at of stepsOf(total)) {
      fresh();
      const before = snapshotTree(root);
      const apply = operation('apply', first());
      const { points, killed } = await killedOff(dataDir, [apply], at);
      const died = `killed at ${points.at(-1)}, step ${at}`;
      expect(killed, died).toBe(true);
      expect(['old\n', 'new\n'], died).toContain(readFileSync(`${root}/there`, 'utf8'));
      const agent = await startAgent(dataDir);
      // The orchestrator resends an operation until it receives the outcome.
      const outcome = await agent.engine.accept(apply);
      if (points.at(-1) !== 'accepted:before') expect(outcome, died).toBe('known');
      expectComplete(await agent.ended(apply.operation_id), died);
      expect(agent.engine.openOperations(), died).toEqual([{ operation_id: apply.operation_id, state: 'finished' }]);
      agent.engine.spool.acknowledge(agent.engine.spool.lastSeq());
      expect(agent.engine.openOperations(), died).toEqual([]);
      const removed = await agent.run(operation('apply', []));
      expect(removed.finished.status, `${died} ${removed.finished.error}`).toMatch(/succeeded|failed/);
      await agent.stop();
      const after = snapshotTree(root);
      delete after['/triggered'];
      expect(after, died).toEqual(before);
      removeDirectory(home);
    }
    fresh();
  });

  test('finishes an apply that is bound to a plan and killed at any step', async () => {
    const planned = async () => {
      removeDirectory(home);
      fresh();
      const planner = await startAgent(dataDir);
      const { finished } = await planner.run(operation('plan', first()));
      await planner.stop();
      return { ...operation('apply', first()), plan_digest: finished.plan_digest as string };
    };
    const undisturbed = await planned();
    const steps = await killedOff(dataDir, [undisturbed], 0);
    expect(steps.points.at(-1)).toBe('done');
    const total = steps.points.length - 1;
    expect(total).toBeGreaterThan(20);
    for (const at of stepsOf(total)) {
      const apply = await planned();
      const { points, killed } = await killedOff(dataDir, [apply], at);
      const died = `killed at ${points.at(-1)}, step ${at}`;
      expect(killed, died).toBe(true);
      const agent = await startAgent(dataDir);
      await agent.engine.accept(apply);
      expectComplete(await agent.ended(apply.operation_id), died);
      await agent.stop();
    }
  });

  test('finishes a removal that is killed at any step', async () => {
    const steps = await killedOff(dataDir, [operation('apply', first()), operation('apply', [])], 0);
    const total = steps.points.length - 1;
    expect(total).toBeGreaterThan(15);
    removeDirectory(home);
    for (const at of stepsOf(total)) {
      fresh();
      const before = snapshotTree(root);
      const removal = operation('apply', []);
      const { points, killed } = await killedOff(dataDir, [operation('apply', first()), removal], at);
      const died = `killed at ${points.at(-1)}, step ${at}`;
      expect(killed, died).toBe(true);
      const agent = await startAgent(dataDir);
      await agent.engine.accept(removal);
      const reported = await agent.ended(removal.operation_id);
      expect(reported.results.length, died).toBe(6);
      const doubtful = reported.results.filter(({ status }) => status === 'unknown');
      expect(
        doubtful.every(({ id }) => id === 'triggered'),
        died,
      ).toBe(true);
      expect(
        reported.results.filter(({ action, status }) => action === 'remove' && status === 'changed').length,
        died,
      ).toBe(6 - doubtful.length);
      await agent.stop();
      const after = snapshotTree(root);
      if (doubtful.length > 0) delete after['/triggered'];
      expect(after, died).toEqual(before);
      removeDirectory(home);
    }
    fresh();
  });

  test('waits for a script that outlived the agent, and does not run it twice', async () => {
    const slow = () => [
      script('slow', {
        check: `test -e ${root}/count`,
        // Kills this agent, but not the script, to detect whether the next agent runs the script again.
        apply: `test -e ${root}/once || { touch ${root}/once; kill -9 $PPID; }
          while test -d ${root} && ! test -e ${root}/go; do sleep 0.02; done
          echo x >> ${root}/count`,
      }),
      file(`${root}/after`, {}, { depends_on: ['script:slow'] }),
    ];
    const apply = operation('apply', slow());
    expect((await killedOff(dataDir, [apply], 0)).killed).toBe(true);
    expect(existsSync(`${root}/count`)).toBe(false);
    const agent = await startAgent(dataDir);
    writeFileSync(`${root}/go`, '');
    const reported = await agent.ended(apply.operation_id);
    await agent.stop();
    expect(reported.results).toMatchObject([
      { action: 'run', status: 'changed', message: expect.stringContaining('reports that it was applied') },
      { status: 'changed' },
    ]);
    expect(readFileSync(`${root}/count`, 'utf8')).toBe('x\n');
  });

  test('starts a script only after the journal contains its process', async () => {
    const slow = () => [
      script('slow', { check: `test -e ${root}/count`, apply: `sleep 0.2; echo x >> ${root}/count` }),
    ];
    const undisturbed = await killedOff(dataDir, [operation('apply', slow())], 0);
    const started = undisturbed.points.indexOf('process:before') + 1;
    expect(started).toBeGreaterThan(0);
    removeDirectory(home);
    fresh();
    const apply = operation('apply', slow());
    expect((await killedOff(dataDir, [apply], started)).killed).toBe(true);
    const agent = await startAgent(dataDir);
    const reported = await agent.ended(apply.operation_id);
    await agent.stop();
    expect(reported.results).toMatchObject([{ action: 'run', status: 'changed' }]);
    await sleep(500);
    expect(readFileSync(`${root}/count`, 'utf8')).toBe('x\n');
  });
});
