import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '@muster/protocol/client';
import {
  applyAgent,
  applyAssignment,
  createAssignment,
  planAgent,
  planAssignment,
  putTag,
  uploadModule,
} from '@muster/protocol/http';
import { expect } from 'vitest';
import { ended } from './eventually.ts';
import { test } from './harness.ts';
import { pagePath, siteModule, treeOf } from './site.ts';

const problemOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error: unknown) => (error instanceof ApiError ? error.problem : Promise.reject(error)),
  );

test('an apply that is bound to a plan makes exactly the planned changes, or none', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  const agent = await stage.agent(orchestrator, 'web-1');
  const params = { node_id: agent.nodeId };
  const root = join(stage.dir, 'site');
  const upload = (greeting: string) =>
    call(uploadModule, { body: { name: 'site', content: siteModule({ name: 'site', root, greeting }) } });
  await upload('hello');
  const plan = async () => (await call(planAgent, { params, body: { modules: ['site'] } })) as { operation_id: string };
  const bound = (plan_id: string, respondAsync = false) =>
    call(applyAgent, { params, body: { modules: [], plan_id }, ...(respondAsync ? { respondAsync } : {}) });

  // After a manual change to the machine, the apply is refused and changes nothing.
  const first = await plan();
  writeFileSync(root, 'in the way\n');
  expect(await problemOf(bound(first.operation_id))).toMatchObject({ status: 409, code: 'plan_stale' });
  expect(treeOf(root)['.']).toMatch(/in the way\n$/);
  const accepted = (await bound(first.operation_id, true)) as { operation_id: string };
  expect(await ended(call, accepted.operation_id)).toMatchObject({
    status: 'failed',
    error: expect.stringMatching(/^plan_stale/),
    resources: [],
  });

  // If the machine is unchanged since the plan, the apply makes exactly the planned changes.
  rmSync(root);
  const second = await call(planAgent, { params, body: { modules: ['site'] } });
  const applied = await bound(second.operation_id);
  expect(applied).toMatchObject({ status: 'succeeded', plan_id: second.operation_id });
  expect(applied.resources.map(({ identity, action }) => [identity, action])).toEqual(
    second.resources.map(({ identity, action }) => [identity, action]),
  );
  // The apply has changed the machine, so the plan is stale.
  expect(await problemOf(bound(second.operation_id))).toMatchObject({ code: 'plan_stale' });

  // The same applies to the plan for an assignment.
  await call(putTag, { params: { ...params, key: 'role' }, body: { value: 'web' } });
  await call(createAssignment, { body: { name: 'web', modules: ['site'], selector: 'role=web' } });
  await upload('hello again');
  const planned = await call(planAssignment, { params: { name: 'web' }, body: {} });
  writeFileSync(pagePath(root, 0), 'by hand\n');
  const refused = await call(applyAssignment, { params: { name: 'web' }, body: { plan_run_id: planned.run_id } });
  expect(refused).toMatchObject({ status: 'failed', results: [{ error: expect.stringMatching(/^plan_stale/) }] });
  expect(treeOf(root)['page-0.html']).toMatch(/by hand\n$/);
  const again = await call(planAssignment, { params: { name: 'web' }, body: {} });
  const done = await call(applyAssignment, { params: { name: 'web' }, body: { plan_run_id: again.run_id } });
  expect(done.status).toBe('succeeded');
  expect(treeOf(root)['page-0.html']).toMatch(/hello again\n$/);
});
