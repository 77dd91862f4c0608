import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  applyAgent,
  createEnrolmentToken,
  getState,
  listReconcile,
  planAgent,
  uploadModule,
} from '@muster/protocol/http';
import { expect } from 'vitest';
import { dialAsAgent, newAgentKey } from '../orchestrator/test/test-agent.ts';
import { ended } from './eventually.ts';
import { test } from './harness.ts';

test('an apply skips a resource while the path of its `only_if` does not exist', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  await stage.agent(orchestrator, 'web-1');
  const [there, file, dependent] = ['there', 'file', 'dependent'].map((name) => join(stage.dir, name)) as [
    string,
    string,
    string,
  ];
  const content = JSON.stringify({
    name: 'm',
    supports: [{ platform: 'linux' }],
    resources: [
      { id: 'f', only_if: { exists: there }, resource: { 'file-unix': { path: file, content: 'x' } } },
      { id: 'g', depends_on: ['f'], resource: { 'file-unix': { path: dependent, content: 'x' } } },
    ],
  });
  await call(uploadModule, { body: { name: 'm', content } });
  const params = { node_id: 'web-1' };
  const body = { modules: ['m'] };
  const statuses = async (operation: typeof applyAgent | typeof planAgent) =>
    (await call(operation, { params, body })).resources.map(({ status }) => status);

  const skipped = await call(applyAgent, { params, body });
  expect(skipped).toMatchObject({
    status: 'succeeded',
    resources: [{ status: 'skipped', message: expect.stringContaining(there) }, { status: 'changed' }],
  });
  expect([existsSync(file), existsSync(dependent)]).toEqual([false, true]);
  expect(await call(getState, { params })).toMatchObject({ applied: [{ identity: dependent }], unapplied: [] });
  expect(await call(listReconcile, {})).toEqual([]);

  mkdirSync(there);
  expect(await statuses(planAgent)).toEqual(['would_change', 'unchanged']);
  expect(await statuses(applyAgent)).toEqual(['changed', 'unchanged']);
  rmSync(there, { recursive: true });
  expect(await statuses(applyAgent)).toEqual(['skipped', 'unchanged']);
  expect(existsSync(file)).toBe(true);
  expect((await call(getState, { params })).applied).toHaveLength(2);
});

test('an agent evaluates commands, negations, and lists in `only_if`, and the orchestrator does not send them to an older agent', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  await stage.agent(orchestrator, 'web-1');
  const [there, missing] = [join(stage.dir, 'there'), join(stage.dir, 'missing')];
  mkdirSync(there);
  const conditions: [unknown, string][] = [
    [{ command: `test -d ${there}` }, 'changed'],
    [{ command: `test -d ${missing}` }, 'skipped'],
    [{ not: { exists: missing } }, 'changed'],
    [[{ exists: there }, { not: { command: `test -d ${there}` } }], 'skipped'],
  ];
  const content = JSON.stringify({
    name: 'm',
    supports: [{ platform: 'linux' }],
    resources: conditions.map(([only_if], i) => ({
      only_if,
      resource: { 'file-unix': { path: join(stage.dir, `file-${i}`), content: 'x' } },
    })),
  });
  await call(uploadModule, { body: { name: 'm', content } });
  const body = { modules: ['m'] };
  const applied = await call(applyAgent, { params: { node_id: 'web-1' }, body });
  expect(applied.resources.map(({ status }) => status)).toEqual(conditions.map(([, status]) => status));
  expect(applied.resources[1]?.message).toMatch(/^skipped, because `test -d .* fails with exit code 1 \(`only_if`\)$/);
  expect(await call(getState, { params: { node_id: 'web-1' } })).toMatchObject({ unapplied: [] });

  const { token } = await call(createEnrolmentToken, { body: { uses: 1, name: 'old', approve: true } });
  const link = await dialAsAgent(orchestrator.agentPort, await newAgentKey());
  await link.join({ token, versions: [6, 5, 4, 3, 2, 1], agent_version: '0.16.0' });
  const { operation_id } = (await call(applyAgent, {
    params: { node_id: 'old' },
    body,
    respondAsync: true,
  })) as { operation_id: string };
  expect((await ended(call, operation_id)).error).toMatch(
    /`only_if` with `command`, `not`, or a list, and the agent old \(version 0\.16\.0, protocol 6\) does not support it/,
  );
  link.end();
});

test('the orchestrator sends no resources with `only_if` to an agent with protocol version 5, which would ignore it', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  const resource = { 'file-unix': { path: '/srv/a', content: 'x' } };
  for (const [name, condition] of [
    ['with', { only_if: { exists: '/opt' } }],
    ['without', {}],
  ] as const) {
    const content = JSON.stringify({
      name,
      supports: [{ platform: 'linux' }],
      resources: [{ ...condition, resource }],
    });
    await call(uploadModule, { body: { name, content } });
  }
  const { token } = await call(createEnrolmentToken, { body: { uses: 1, name: 'old', approve: true } });
  const link = await dialAsAgent(orchestrator.agentPort, await newAgentKey());
  await link.join({ token, versions: [5, 4, 3, 2, 1], agent_version: '0.9.0' });
  const submit = (module: string, operation: typeof applyAgent | typeof planAgent) =>
    call(operation, { params: { node_id: 'old' }, body: { modules: [module] }, respondAsync: true }) as Promise<{
      operation_id: string;
    }>;
  for (const operation of [applyAgent, planAgent]) {
    const { operation_id } = await submit('with', operation);
    expect(await ended(call, operation_id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(
        /`only_if`, and the agent old \(version 0\.9\.0, protocol 5\) does not support it; upgrade the agent/,
      ),
    });
  }
  const { operation_id } = await submit('without', applyAgent);
  expect(await link.next('operation')).toMatchObject({ operation_id });
  link.end();
});
