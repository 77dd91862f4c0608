import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  applyAgent,
  checkDrift,
  getAgent,
  getSettings,
  getState,
  listAgents,
  planAgent,
  uploadModule,
} from '@muster/protocol/http';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';
import { siteModule } from './site.ts';

test('the orchestrator and the agent reload their configuration on SIGHUP, and keep their data across a restart', async ({
  stage,
}) => {
  const files = { orchestrator: join(stage.dir, 'orchestrator.yml'), agent: join(stage.dir, 'agent.yml') };
  for (const file of Object.values(files)) writeFileSync(file, '');
  const orchestrator = await stage.orchestrator({ flags: ['--config', files.orchestrator] });
  const { call } = orchestrator;
  const flags = ['--config', files.agent];
  const agent = await stage.agent(orchestrator, 'web-1', { tags: { role: 'web' }, flags });
  const { nodeId } = agent;
  const params = { node_id: nodeId };
  await call(uploadModule, {
    body: { name: 'site', content: siteModule({ name: 'site', root: join(stage.dir, 'site') }) },
  });
  const body = { modules: ['site'] };
  await call(applyAgent, { params, body });
  const state = await call(getState, { params });

  // Both programs reload their configuration on SIGHUP, and ignore an invalid one.
  const said = (of: typeof agent | typeof orchestrator, text: string) =>
    eventually(`"${text}" is logged`, async () =>
      of.program.lastLines(20).some((line) => line.includes(text)) ? true : null,
    );
  writeFileSync(files.orchestrator, 'drift: { interval: 77 }\npending_capacity: 7\n');
  orchestrator.program.kill('SIGHUP');
  await said(orchestrator, 'some changed configuration settings take effect only after a restart');
  writeFileSync(files.orchestrator, 'drift: { interval: 78 }\nnonsense: 1\n');
  orchestrator.program.kill('SIGHUP');
  await said(orchestrator, 'nothing was changed');
  expect(await call(getSettings, {})).toMatchObject({
    settings: { drift: { interval: 77 }, pending_capacity: 100 },
    sources: { 'drift.interval': 'file' },
  });
  agent.program.kill('SIGHUP');
  await said(agent, 'configuration reloaded');
  writeFileSync(files.agent, 'nonsense: 1\n');
  agent.program.kill('SIGHUP');
  await said(agent, 'the configuration is invalid');
  writeFileSync(files.orchestrator, '');
  writeFileSync(files.agent, '');

  expect((await agent.stop()).code).toBe(0);
  await eventually('the agent is shown as disconnected', async () =>
    (await call(getAgent, { params })).connected ? null : true,
  );
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
