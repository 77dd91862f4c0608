import { join } from 'node:path';
import { applyAgent, checkDrift, getAgent, getState, listAgents, planAgent, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';
import { siteModule } from './site.ts';

test('a second start takes up where the first left off', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  const agent = await stage.agent(orchestrator, 'web-1', { tags: { role: 'web' } });
  const { nodeId } = agent;
  const params = { node_id: nodeId };
  await call(uploadModule, {
    body: { name: 'site', content: siteModule({ name: 'site', root: join(stage.dir, 'site') }) },
  });
  const body = { modules: ['site'] };
  await call(applyAgent, { params, body });
  const state = await call(getState, { params });

  expect((await agent.stop()).code).toBe(0);
  await eventually('the link is gone', async () => ((await call(getAgent, { params })).connected ? null : true));
  expect((await orchestrator.stop()).code).toBe(0);

  await orchestrator.start();
  expect(await call(getAgent, { params })).toMatchObject({ name: 'web-1', connected: false, tags: { role: 'web' } });
  await agent.start();
  expect(agent.nodeId).toBe(nodeId);
  expect(await call(listAgents, {})).toMatchObject([{ name: 'web-1', status: 'approved', connected: true }]);
  expect(await call(getState, { params })).toEqual(state);
  expect((await call(planAgent, { params, body })).summary).toMatchObject({ total: 26, unchanged: 26 });
  expect((await call(checkDrift, { params })).status).toBe('in_sync');
});
