import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { applyAgent, type DriftRecord, latestDrift, listAudit, listDrift, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { type AgentProcess, type Orchestrator, type Stage, test } from './harness.ts';

const moduleOf = (paths: readonly string[]) =>
  JSON.stringify({
    name: 'm',
    supports: [{ platform: 'linux' }],
    resources: paths.map((path) => ({ resource: { 'file-unix': { path, content: 'as applied\n', mode: '0644' } } })),
  });

async function applied(stage: Stage, orchestrator: Orchestrator): Promise<{ paths: string[]; agent: AgentProcess }> {
  const agent = await stage.agent(orchestrator, 'web-1');
  const paths = ['motd', 'issue'].map((name) => join(stage.dir, 'etc', name));
  await orchestrator.call(uploadModule, { body: { name: 'm', content: moduleOf(paths) } });
  await orchestrator.call(applyAgent, { params: { node_id: 'web-1' }, body: { modules: ['m'] } });
  return { paths, agent };
}

const latestThat = async (orchestrator: Orchestrator, fits: (record: DriftRecord) => boolean) =>
  eventually('the latest drift record has the expected content', async () => {
    const record = await orchestrator.call(latestDrift, { params: { node_id: 'web-1' } });
    return record !== null && fits(record) ? record : null;
  });
const driftEventsOf = async ({ call }: Orchestrator) =>
  (await call(listAudit, { query: { category: 'drift' } })).events.map(({ event_type }) => event_type).reverse();

test('the watch of an agent reports manual changes and their repair', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const [motd, issue] = (await applied(stage, orchestrator)).paths as [string, string];
  for (const text of ['kilroy\n', 'was\n', 'here\n']) {
    writeFileSync(motd, text);
    const drifted = await latestThat(orchestrator, ({ status }) => status === 'drifted');
    // The trigger shows that the agent's watch detected the change, rather than a scheduled check.
    expect(drifted).toMatchObject({
      trigger: 'watch',
      resources: [{ identity: motd, changes: [{ field: 'content' }] }],
    });
    writeFileSync(`${motd}.new`, 'as applied\n', { mode: 0o644 });
    renameSync(`${motd}.new`, motd);
    expect(await latestThat(orchestrator, ({ status }) => status === 'in_sync')).toMatchObject({ trigger: 'watch' });
  }
  expect(await driftEventsOf(orchestrator)).toEqual(
    Array.from({ length: 3 }, () => ['drift.detected', 'drift.resolved']).flat(),
  );

  // Drift is reported once, and once more when another resource drifts. The apply that repairs the drift causes no
  // drift event.
  chmodSync(motd, 0o600);
  await latestThat(orchestrator, ({ status }) => status === 'drifted');
  chmodSync(issue, 0o600);
  await latestThat(orchestrator, ({ resources }) => resources.length === 2);
  const { resources } = await orchestrator.call(applyAgent, { params: { node_id: 'web-1' }, body: { modules: ['m'] } });
  expect(resources.map(({ corrective }) => corrective)).toEqual([true, true]);
  expect((await driftEventsOf(orchestrator)).slice(6)).toEqual(['drift.detected', 'drift.detected', 'drift.resolved']);
  // The agent sends no drift hint for its own apply, so the orchestrator schedules a check immediately.
  expect(await latestThat(orchestrator, ({ status }) => status === 'in_sync')).toMatchObject({ trigger: 'schedule' });
  const records = await orchestrator.call(listDrift, { params: { node_id: 'web-1' } });
  expect(records.filter(({ trigger }) => trigger === 'schedule')).toHaveLength(1);
  await sleep(500);
  expect(await orchestrator.call(listDrift, { params: { node_id: 'web-1' } })).toEqual(records);
});

test('the orchestrator checks machines for drift on a schedule', async ({ stage }) => {
  const env = { MUSTER_DRIFT_INTERVAL: '1', MUSTER_DRIFT_SKIP_RECENTLY_APPLIED: '0' };
  const orchestrator = await stage.orchestrator({ env });
  await applied(stage, orchestrator);
  const first = await latestThat(orchestrator, ({ trigger }) => trigger === 'schedule');
  expect(first.status).toBe('in_sync');
  await latestThat(orchestrator, ({ drift_id }) => drift_id !== first.drift_id);
});
