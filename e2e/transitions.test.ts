import { chmodSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { type AuditEvent, getAgent, listAudit } from '@muster/protocol/http';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { type Orchestrator, test } from './harness.ts';

const lostAfterSecs = 10;
const options = { env: { MUSTER_AGENTS_LOST_AFTER_SECS: String(lostAfterSecs) } };

const eventsOf = async ({ call }: Orchestrator, type: string): Promise<AuditEvent[]> =>
  (await call(listAudit, { query: { event_type: type } })).events;
const recorded = (orchestrator: Orchestrator, type: string, count: number) =>
  eventually(`the audit log contains at least ${count} events of type ${type}`, async () => {
    const events = await eventsOf(orchestrator, type);
    return events.length >= count ? events : null;
  });

test('the orchestrator reports a killed agent as lost and later as returned, even after an orchestrator restart', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator(options);
  const agent = await stage.agent(orchestrator, 'web-1');
  const steady = await stage.agent(orchestrator, 'web-2');
  await agent.kill9();
  const [lost] = await recorded(orchestrator, 'agent.lost', 1);
  expect(lost).toMatchObject({ severity: 'warning', target: { id: agent.nodeId, name: 'web-1' } });
  const params = { node_id: agent.nodeId };
  const shown = await orchestrator.call(getAgent, { params });
  expect(shown.connected).toBe(false);
  expect(Date.parse(lost!.timestamp) / 1000 - shown.last_seen_at).toBeGreaterThanOrEqual(lostAfterSecs);

  await agent.start();
  expect(await recorded(orchestrator, 'agent.returned', 1)).toMatchObject([{ target: { name: 'web-1' } }]);

  // The orchestrator also reports an agent as lost if the agent was killed together with the orchestrator and does not
  // reconnect.
  await agent.kill9();
  await orchestrator.kill9();
  await orchestrator.start();
  await steady.connected(2);
  const losses = await recorded(orchestrator, 'agent.lost', 2);
  expect(losses.map(({ target }) => target.name)).toEqual(['web-1', 'web-1']);
  expect(await eventsOf(orchestrator, 'agent.returned')).toHaveLength(1);
  // Reconnecting causes no event.
  expect((await eventsOf(orchestrator, 'agent.connected')).map(({ target }) => target.name).toSorted()).toEqual([
    'web-1',
    'web-2',
  ]);
});

test('the orchestrator reports a copied data directory once, and keeps the first agent connected', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator(options);
  const agent = await stage.agent(orchestrator, 'web-1');
  const copy = join(stage.dir, 'copy');
  // Omits the lock file, because the copy simulates an agent on another machine.
  cpSync(agent.dataDir, copy, { recursive: true, filter: (path) => !path.includes('agent-lock.') });
  chmodSync(copy, 0o700);
  for (let start = 0; start < 2; start++) {
    const clone = stage.run('clone', ['agent', '--data-dir', copy, '--log-format', 'json']);
    await eventually('the clone is refused', async () =>
      clone.lastLines(20).some((line) => line.includes('"code":"cloned"')) ? true : null,
    );
    expect((await clone.stop()).code).toBe(0);
  }
  const cloned = await recorded(orchestrator, 'agent.cloned', 1);
  expect(cloned).toMatchObject([
    { severity: 'critical', target: { id: agent.nodeId, name: 'web-1' }, metadata: { ip: '127.0.0.1' } },
  ]);
  expect(await eventsOf(orchestrator, 'agent.refused')).toEqual([]);
  expect((await orchestrator.call(getAgent, { params: { node_id: agent.nodeId } })).connected).toBe(true);
});
