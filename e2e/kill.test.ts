import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  applyAgent,
  applyAssignment,
  createAssignment,
  createChannel,
  createSecret,
  createWindow,
  getAgent,
  listAudit,
  listChannels,
  listModules,
  listRuns,
  listSecrets,
  listWindows,
  putTag,
  uploadModule,
  verifyAudit,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { sampled } from '../lib/test/sampled.ts';
import { ended, eventually } from './eventually.ts';
import { test } from './harness.ts';
import { runsOf, siteModule } from './site.ts';
import { connected, expectDone, type Moment, startTrial } from './trial.ts';

const moments: Moment[] = [...sampled([0, 3, 10, 25, 60, 120], 2), 'script'];
/** Milliseconds of concurrent writes before the process is killed. */
const pauses = sampled([0, 40, 80, 120, 160], 3);

describe('kill -9 during an apply', () => {
  test('an apply finishes once and loses no acknowledged change if the orchestrator is killed', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const parts = { orchestrator, agent };
    for (const moment of moments) {
      const trial = await startTrial(stage, parts, moment);
      await orchestrator.kill9();
      await orchestrator.start();
      await connected(parts);
      await expectDone(trial, `site-${moment}`);
      // Restarts the agent, so that it starts with the minimum backoff instead of up to half a minute.
      await agent.stop();
      await agent.start();
    }
    expect(await orchestrator.call(listModules, {})).toHaveLength(moments.length);
  });

  test('an apply resumes and runs its script once if the agent is killed', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const parts = { orchestrator, agent };
    for (const moment of moments) {
      const trial = await startTrial(stage, parts, moment);
      await agent.kill9();
      await agent.start();
      await connected(parts);
      await expectDone(trial, `site-${moment}`);
    }
  });

  test('an apply finishes once if both processes are killed', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const parts = { orchestrator, agent };
    for (const moment of [5, 'script'] as const) {
      const trial = await startTrial(stage, parts, moment);
      await Promise.all([orchestrator.kill9(), agent.kill9()]);
      await orchestrator.start();
      await agent.start();
      await expectDone(trial, `site-${moment}`);
    }
  });

  test('the orchestrator keeps every acknowledged write of concurrent clients if it is killed', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const params = { node_id: agent.nodeId };
    const content = siteModule({ name: 'site', root: stage.dir, script: 'slow' });
    await call(uploadModule, { body: { name: 'site', content } });
    await call(createAssignment, { body: { name: 'none', modules: ['site'], selector: 'role=nobody' } });
    const answered = new Map<string, string>();
    const ids = { secrets: [] as string[], windows: [] as string[], channels: [] as string[], runs: [] as string[] };
    const tag = async (key: string, value: string) => {
      await call(putTag, { params: { ...params, key }, body: { value } });
      answered.set(key, value);
    };
    const secret = async (name: string, value: string) => {
      ids.secrets.push((await call(createSecret, { body: { name, value } })).name);
    };
    const window = async (reason: string) => {
      ids.windows.push((await call(createWindow, { body: { starts_at: 1, ends_at: 2, reason } })).id);
    };
    const channel = async (name: string) => {
      const body = { name, channel_type: 'ntfy' as const, config: { topic: 't', url: 'http://127.0.0.1:1' } };
      ids.channels.push((await call(createChannel, { body })).id);
    };
    const run = async () => {
      ids.runs.push((await call(applyAssignment, { params: { name: 'none' } })).run_id);
    };
    for (const [round, pause] of pauses.entries()) {
      let alive = true;
      // Each writer writes in sequence until the connection breaks. The last write may be stored without a response.
      const writer = async (write: (name: string, value: string) => Promise<unknown>, person: number) => {
        // At most 90 rows in each of five rounds, because the lists below are limited to 500 rows.
        for (let count = 0; alive && count < 90; count++) {
          const name = `r${round}_p${person}_n${count}`;
          const written = await write(name, `${count}`).then(
            () => true,
            () => false,
          );
          if (!written) return;
        }
      };
      const writers = Promise.all([tag, tag, secret, window, channel, run].map(writer));
      // Waits for a number of writes instead of a time, because the machine may be busy. The pause that follows varies
      // when the process is killed.
      await eventually('each kind of write has been acknowledged several times', async () =>
        answered.size > 7 * (round + 1) && Object.values(ids).every(({ length }) => length > 2 * (round + 1))
          ? true
          : null,
      );
      await sleep(pause);
      await orchestrator.kill9();
      alive = false;
      await writers;
      await orchestrator.start();
      const { tags } = await call(getAgent, { params });
      for (const [key, value] of answered) expect(tags[key], key).toBe(value);
      const there = {
        secrets: (await call(listSecrets, {})).map(({ name }) => name),
        windows: (await call(listWindows, { query: { limit: '500' } })).map(({ id }) => id),
        channels: (await call(listChannels, {})).map(({ id }) => id),
        runs: (await call(listRuns, { query: { limit: '500' } })).map(({ run_id }) => run_id),
      };
      expect(there).toEqual({
        secrets: expect.arrayContaining(ids.secrets),
        windows: expect.arrayContaining(ids.windows),
        channels: expect.arrayContaining(ids.channels),
        runs: expect.arrayContaining(ids.runs),
      });
      const verdict = await call(verifyAudit, {});
      expect(verdict).toMatchObject({ ok: true });
    }
    expect(answered.size).toBeGreaterThan(20);
    for (const written of Object.values(ids)) expect(written.length).toBeGreaterThan(5);
    const { events } = await call(listAudit, { query: { event_type: 'agent.tagged', limit: '500' } });
    expect(events.length).toBeGreaterThanOrEqual(Math.min(500, answered.size));
  });

  test('the agent does not rerun a script without `check` after being killed, and reports the script’s outcome as unknown', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const log = join(stage.dir, 'log');
    const apply = `echo ran >> '${log}'; until test -e '${log}.go'; do sleep 0.05; done`;
    const script = { program: 'sh', manages: 'a-line', apply };
    const resources = [
      { id: 'once', resource: { script } },
      { id: 'after', depends_on: ['once'], resource: { 'file-unix': { path: `${log}.after`, content: 'x' } } },
      { id: 'beside', resource: { 'file-unix': { path: `${log}.beside`, content: 'x' } } },
    ];
    const content = JSON.stringify({ name: 'line', supports: [{ platform: 'linux' }], resources });
    await call(uploadModule, { body: { name: 'line', content } });
    const params = { node_id: agent.nodeId };
    const { operation_id } = await call(applyAgent, { params, body: { modules: ['line'] }, respondAsync: true });
    await eventually('the script is running', async () => (existsSync(log) ? true : null));
    await agent.kill9();
    writeFileSync(`${log}.go`, '');
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
