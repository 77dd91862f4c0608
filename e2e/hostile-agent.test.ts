import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { applyAgent, createEnrolmentToken, getState, listAudit, listDrift, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';
import { HostileAgent, type Strategy, strategies } from './hostile-agent.ts';

/** Counts the rows, bytes, and links that hostile agents cause on a real orchestrator, independently of time. */

const names = Object.keys(strategies) as Strategy[];
const mebibyte = 1024 * 1024;
const resources = 4;
const files = Array.from(
  { length: resources },
  (_, i) => `  - { id: f${i}, resource: { file-unix: { path: /srv/${i}, content: "x" } } }`,
);
const module = `name: files\nsupports: [{ platform: linux }]\nresources:\n${files.join('\n')}\n`;

test('the orchestrator stores at most the budgeted data from hostile agents, and closes links that violate the protocol', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator({ env: { MUSTER_AGENTS_DAILY_BYTES: String(mebibyte) } });
  const { call } = orchestrator;
  await call(uploadModule, { body: { name: 'files', content: module } });
  const agents = new Map<Strategy, HostileAgent>();
  for (const name of names) {
    const { token } = await call(createEnrolmentToken, { body: { uses: 1, name, approve: true } });
    const agent = await HostileAgent.create(orchestrator.agentPort, token, name, 750);
    agents.set(name, agent);
    void agent.run();
  }
  const until = async (condition: () => boolean) => (condition() ? true : null);
  const countsOf = (name: Strategy) => agents.get(name)!.counts;
  const body = { modules: ['files'] };
  const submit = (node_id: string) => call(applyAgent, { params: { node_id }, body, respondAsync: true });
  for (const name of names)
    await eventually(`the agent "${name}" has an operation`, () =>
      name === 'versions' ? until(() => true) : submit(name).then(() => true),
    );

  // A report with a name or position that is not in the operation causes the orchestrator to close the link and store
  // none of it.
  for (const name of ['long-names', 'other-positions'] as const)
    await eventually(`links of the agent "${name}" were ended`, () => until(() => countsOf(name).ended > 3));
  // The orchestrator accepts the final reports of these operations, no matter how much the agents sent before.
  for (const name of ['huge-results', 'many-results'] as const)
    await eventually(
      `the agent "${name}" has finished an operation`,
      () => until(() => countsOf(name).finished > 0),
      100_000,
    );
  for (const name of ['drift-hints', 'flapping'] as const)
    await eventually(
      `the agent "${name}" has finished several operations`,
      () => until(() => countsOf(name).finished > 2),
      100_000,
    );
  const refusals = async () => (await call(listAudit, { query: { event_type: 'agent.refused', limit: '500' } })).events;
  const refused = await eventually('the audit log contains the refusals', async () => {
    const events = await refusals();
    const isRefused = (name: Strategy, code: string) =>
      events.some(({ metadata, target }) => metadata.code === code && target.name === name);
    return isRefused('versions', 'rate_exceeded') &&
      isRefused('long-names', 'protocol_violation') &&
      isRefused('other-positions', 'protocol_violation')
      ? events
      : null;
  });
  const refusedFor = (code: string) =>
    new Set(refused.filter(({ metadata }) => metadata.code === code).map(({ target }) => target.name));
  expect(refusedFor('protocol_violation')).toEqual(new Set(['long-names', 'other-positions']));
  expect(refusedFor('rate_exceeded')).toContain('versions');
  // Hostile agents reconnect immediately after a link is closed, so each of them may exceed the connection rate.
  expect(['long-names', 'other-positions', 'versions']).toEqual(
    expect.arrayContaining([...refusedFor('rate_exceeded')]),
  );
  const { events: limited } = await call(listAudit, { query: { event_type: 'agent.limited', limit: '500' } });
  const bytesUsedUp = limited.filter(({ metadata }) => metadata.what === 'bytes').map(({ target }) => target.name);
  expect(new Set(bytesUsedUp)).toContain('huge-results');
  expect(bytesUsedUp.length).toBe(new Set(bytesUsedUp).size);
  expect((await call(getState, { params: { node_id: 'many-results' } })).applied).toHaveLength(resources);
  const drift = await call(listDrift, { params: { node_id: 'drift-hints' }, query: { limit: '500' } });
  expect(JSON.stringify(drift).length).toBeLessThan(4 * mebibyte);

  for (const agent of agents.values()) agent.stop();
  await orchestrator.stop();
  const db = new DatabaseSync(join(orchestrator.dataDir, 'muster.db'), { readOnly: true });
  const rows = (sql: string) => db.prepare(sql).all() as { name: string; results: number; bytes: number }[];
  // A row has one result per line.
  const results = rows(
    `select agents.name, sum(length(result) - length(replace(result, char(10), '')) + 1) as results,
       sum(length(result)) as bytes from operation_resources
     join operations using (operation_id) join agents using (node_id) group by agents.name`,
  );
  const outputs = rows(
    `select agents.name, count(*) as rows, sum(length(resource_key)) as bytes from operation_outputs
     join operations using (operation_id) join agents using (node_id) group by agents.name`,
  );
  db.close();
  expect(outputs).toEqual([]);
  const of = (name: Strategy) => results.find((row) => row.name === name);
  expect(of('long-names')).toBeUndefined();
  expect(of('other-positions')).toBeUndefined();
  expect(of('huge-results')?.results).toBe(resources);
  // The bound covers the daily budget, the report that exceeds it, and the 64 KiB that may always be stored for each
  // operation.
  expect(of('many-results')?.bytes).toBeLessThan(3 * mebibyte);
});
