import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { applyAgent, getAgent, listAudit, listModules, putTag, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { ended, eventually } from './eventually.ts';
import { test } from './harness.ts';
import { runsOf } from './site.ts';
import { begun, connected, expectDone, type Moment } from './trial.ts';

const moments: Moment[] = [0, 3, 10, 25, 60, 'script', 120];

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
