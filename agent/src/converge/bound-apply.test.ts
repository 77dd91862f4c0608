import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { directory, file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

const h = useAgent();
const desired = (content = 'new\n') => [
  directory(`${h.root}/d`),
  file(`${h.root}/d/f`, { content }, { id: 'f' }),
  script('after', { apply: `echo x >> ${h.root}/ran` }, { rerun_on: [`path:${h.root}/d/f`] }),
];
const planned = async (resources = desired()) => {
  const { finished } = await h.agent.run(operation('plan', resources));
  expect(finished.plan_digest).toMatch(/^[0-9a-f]{64}$/);
  return finished.plan_digest as string;
};

describe('an apply that is bound to a plan', () => {
  test('applies exactly what another process planned', async () => {
    const plan_digest = await planned();
    expect(await planned()).toBe(plan_digest);
    await h.restart();
    const { finished, results } = await h.agent.run(operation('apply', desired(), { plan_digest }));
    expect(finished.status).toBe('succeeded');
    expect(results.map(({ action }) => action)).toEqual(['create', 'create', 'run']);
    expect(readFileSync(`${h.root}/ran`, 'utf8')).toBe('x\n');
  });

  test('refuses to apply a plan when the machine has changed since', async () => {
    const plan_digest = await planned();
    writeFileSync(`${h.root}/d`, 'in the way\n');
    const { finished, results } = await h.agent.run(operation('apply', desired(), { plan_digest }));
    expect(finished).toMatchObject({ status: 'failed', error: expect.stringMatching(/^plan_stale: /) });
    expect(results).toEqual([]);
    expect(readFileSync(`${h.root}/d`, 'utf8')).toBe('in the way\n');
    expect(existsSync(`${h.root}/ran`)).toBe(false);
    // An apply without resources finds nothing to remove, and no triggers are due.
    rmSync(`${h.root}/d`);
    const removal = await h.agent.run(operation('apply', []));
    expect(removal.results).toEqual([]);
  });

  test('refuses a plan if the content changed, even if the action did not', async () => {
    await h.agent.run(operation('apply', desired()));
    const plan_digest = await planned(desired('newer\n'));
    writeFileSync(`${h.root}/d/f`, 'by hand\n');
    const { finished } = await h.agent.run(operation('apply', desired('newer\n'), { plan_digest }));
    expect(finished.status).toBe('failed');
    expect(readFileSync(`${h.root}/d/f`, 'utf8')).toBe('by hand\n');
  });

  test('keeps the due triggers when it refuses a stale plan', async () => {
    const failing = [
      file(`${h.root}/cause`, { content: '1' }, { id: 'cause' }),
      script('due', { check: 'true', apply: `test -e ${h.root}/go` }, { rerun_on: [`path:${h.root}/cause`] }),
    ];
    expect((await h.agent.run(operation('apply', failing))).finished.status).toBe('failed');
    await h.agent.run(operation('apply', failing, { plan_digest: '00'.repeat(32) }));
    writeFileSync(`${h.root}/go`, '');
    const { results } = await h.agent.run(operation('apply', failing));
    expect(results[1]).toMatchObject({ action: 'run', status: 'changed', triggered_by: ['cause'] });
  });

  test('computes different plan digests with different keys', async () => {
    const plan_digest = await planned();
    await h.restart({ planKey: Buffer.from('another') });
    expect(await planned()).not.toBe(plan_digest);
  });
});
