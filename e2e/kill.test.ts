import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  applyAgent,
  getAgent,
  listAgentOperations,
  listAudit,
  listModules,
  type Operation,
  planAgent,
  putTag,
  uploadModule,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { ended, eventually } from './eventually.ts';
import { type AgentProcess, type Orchestrator, type Stage, test } from './harness.ts';
import { pagePath, runsOf, siteModule } from './site.ts';

/** Resolves when it is time to kill: so long after the apply was answered, or when its script is running. */
type Moment = number | 'script';

const moments: Moment[] = [0, 3, 10, 25, 60, 'script', 120];

const reached = (moment: Moment, root: string): Promise<unknown> =>
  moment === 'script'
    ? eventually('the script runs', async () => (existsSync(`${root}/started`) ? true : null))
    : sleep(moment);

interface Trial {
  orchestrator: Orchestrator;
  agent: AgentProcess;
  root: string;
  operationId: string;
}

/** Uploads a site of its own, applies it without waiting, and lets the moment come. */
async function begun(
  stage: Stage,
  parts: { orchestrator: Orchestrator; agent: AgentProcess },
  moment: Moment,
): Promise<Trial> {
  const { call } = parts.orchestrator;
  const name = `site-${moment}`;
  const root = join(stage.dir, name);
  await call(uploadModule, { body: { name, content: siteModule({ name, root, script: 'slow' }) } });
  const params = { node_id: parts.agent.nodeId };
  const { operation_id } = await call(applyAgent, { params, body: { modules: [name] }, respondAsync: true });
  await reached(moment, root);
  return { ...parts, root, operationId: operation_id };
}

/** What must hold after any kill: one end, every resource told once, everything done, nothing twice. */
async function expectDone({ orchestrator, agent, root, operationId }: Trial, name: string): Promise<void> {
  const { call } = orchestrator;
  const operation = await ended(call, operationId);
  expect(operation, JSON.stringify(operation)).toMatchObject({ status: 'succeeded', modules: [name] });
  expectEachOnce(operation);
  expect(runsOf(root)).toBe(1);
  for (let page = 0; page < 20; page++) expect(existsSync(pagePath(root, page))).toBe(true);

  const params = { node_id: agent.nodeId };
  const { operations } = await call(listAgentOperations, { params, query: { limit: '500' } });
  expect(operations.filter(({ operation_id }) => operation_id === operationId)).toHaveLength(1);
  const again = await call(planAgent, { params, body: { modules: [name] } });
  expect(again.summary).toMatchObject({ total: 26, unchanged: 26 });
}

function expectEachOnce({ resources, summary }: Operation): void {
  const told = resources.map(({ module, type, identity }) => `${module} ${type} ${identity}`);
  expect(new Set(told).size).toBe(told.length);
  expect(summary.total).toBe(told.length);
  expect(summary.failed).toBe(0);
}

const connected = ({ orchestrator, agent }: { orchestrator: Orchestrator; agent: AgentProcess }) =>
  eventually('the agent is back', async () => {
    const { connected } = await orchestrator.call(getAgent, { params: { node_id: agent.nodeId } });
    return connected ? true : null;
  });

describe('kill -9 in the middle of an apply', () => {
  test('of the orchestrator: the apply ends once and nothing that was answered is missing', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const parts = { orchestrator, agent };
    for (const moment of moments) {
      const trial = await begun(stage, parts, moment);
      await orchestrator.kill9();
      await orchestrator.start();
      await connected(parts);
      await expectDone(trial, `site-${moment}`);
      // A new process begins its backing off anew; this one would soon wait for half a minute.
      await agent.stop();
      await agent.start();
    }
    expect(await orchestrator.call(listModules, {})).toHaveLength(moments.length);
  });

  test('of the agent: it goes on where it was, and the script has run once', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const parts = { orchestrator, agent };
    for (const moment of moments) {
      const trial = await begun(stage, parts, moment);
      await agent.kill9();
      await agent.start();
      await connected(parts);
      await expectDone(trial, `site-${moment}`);
    }
  });

  test('of both at once', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const parts = { orchestrator, agent };
    for (const moment of [5, 'script'] as const) {
      const trial = await begun(stage, parts, moment);
      await Promise.all([orchestrator.kill9(), agent.kill9()]);
      await orchestrator.start();
      await agent.start();
      await expectDone(trial, `site-${moment}`);
    }
  });

  test('of the orchestrator under writes from several people: every write that was answered is there', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const params = { node_id: agent.nodeId };
    const answered = new Map<string, string>();
    for (let round = 0; round < 5; round++) {
      let alive = true;
      // Each writes one key after the other until the connection breaks; the one under way may or may not be there.
      const writer = async (person: number) => {
        for (let count = 0; alive; count++) {
          const key = `r${round}.p${person}.n${count}`;
          const written = await call(putTag, { params: { ...params, key }, body: { value: `${count}` } }).then(
            () => true,
            () => false,
          );
          if (!written) return;
          answered.set(key, `${count}`);
        }
      };
      const writers = Promise.all([0, 1, 2, 3].map(writer));
      await sleep(150 + 40 * round);
      await orchestrator.kill9();
      alive = false;
      await writers;
      await orchestrator.start();
      const { tags } = await call(getAgent, { params });
      for (const [key, value] of answered) expect(tags[key], key).toBe(value);
    }
    expect(answered.size).toBeGreaterThan(20);
    const { events } = await call(listAudit, { query: { event_type: 'agent.tagged', limit: '500' } });
    expect(events.length).toBeGreaterThanOrEqual(Math.min(500, answered.size));
  });

  test('of the agent in a script without check: it is not run again, and what happened is not known', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const log = join(stage.dir, 'log');
    const script = { program: 'sh', manages: 'a-line', apply: `echo ran >> '${log}'; sleep 5` };
    const resources = [
      { id: 'once', resource: { script } },
      { id: 'after', depends_on: ['once'], resource: { 'file-unix': { path: `${log}.after`, content: 'x' } } },
      { id: 'beside', resource: { 'file-unix': { path: `${log}.beside`, content: 'x' } } },
    ];
    const content = JSON.stringify({ name: 'line', supports: [{ platform: 'linux' }], resources });
    await call(uploadModule, { body: { name: 'line', content } });
    const params = { node_id: agent.nodeId };
    const { operation_id } = await call(applyAgent, { params, body: { modules: ['line'] }, respondAsync: true });
    await eventually('the script runs', async () => (existsSync(log) ? true : null));
    await agent.kill9();
    await agent.start();
    const operation = await ended(call, operation_id);
    expect(operation.status).toBe('failed');
    expect(operation.resources.map(({ id, status }) => [id, status])).toEqual([
      ['once', 'unknown'],
      ['after', 'skipped'],
      ['beside', 'changed'],
    ]);
    expect(runsOf(stage.dir)).toBe(1);
  });
});
