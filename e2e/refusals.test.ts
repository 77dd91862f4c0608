import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '@muster/protocol/client';
import {
  applyAgent,
  applyAssignment,
  createAssignment,
  getAgent,
  listAgentOperations,
  listAgents,
  removeAgent,
  setAgentStatus,
  uploadModule,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';

const codeOf = async (call: Promise<unknown>) =>
  await call.then(
    () => 'no error',
    (error: unknown) => (error instanceof ApiError ? error.problem.code : String(error)),
  );

/** Waits for a log line that matches the text. @returns the line */
const logged = (program: { lastLines(count: number): string[] }, text: string | RegExp) =>
  eventually(`"${text}" is logged`, async () => program.lastLines(200).find((line) => line.match(text)) ?? null);

describe('refusals', () => {
  test('an agent does not connect to an orchestrator with another key, and logs that key', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const token = await orchestrator.token('web-1');
    const address = `127.0.0.1:${orchestrator.agentPort}`;
    const agent = stage.agentAt('web-1', [address, '--orchestrator-key', 'ab'.repeat(32), '--token', token]);
    const program = agent.launch();
    await logged(program, orchestrator.publicKey);
    expect(program.ending).toBeNull();
    expect(program.events('connected')).toEqual([]);
    expect(await orchestrator.call(listAgents, {})).toEqual([]);

    // The agent has not sent its token, so another agent can use it.
    const right = await stage.agent(orchestrator, 'web-2', { token });
    const params = { node_id: right.nodeId };
    expect(await orchestrator.call(getAgent, { params })).toMatchObject({ name: 'web-1', status: 'approved' });
  });

  test('the orchestrator sends no operation to a pending or rejected agent, even if an assignment selects it', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1', { token: null });
    const params = { node_id: agent.nodeId };
    const path = join(stage.dir, 'file');
    const resources = [{ id: 'a', resource: { 'file-unix': { path, content: 'x' } } }];
    const content = JSON.stringify({ name: 'one', supports: [{ platform: 'linux' }], resources });
    await call(uploadModule, { body: { name: 'one', content } });
    await call(createAssignment, { body: { name: 'all', modules: ['one'], selector: '!nothing' } });

    expect(await call(getAgent, { params })).toMatchObject({ status: 'pending', name: null, connected: true });
    expect((await call(applyAssignment, { params: { name: 'all' } })).results).toEqual([]);
    expect(await codeOf(call(applyAgent, { params, body: { modules: ['one'] } }))).toBe('agent_not_approved');
    expect((await call(listAgentOperations, { params })).operations).toEqual([]);

    // A rejected agent logs the rejection and receives no operation.
    await call(setAgentStatus, { params, body: { status: 'rejected' } });
    await logged(agent.program, 'rejected');
    expect(await codeOf(call(applyAgent, { params, body: { modules: ['one'] } }))).toBe('agent_not_approved');
    expect(existsSync(path)).toBe(false);
    await call(removeAgent, { params });
    expect(await call(listAgents, {})).toEqual([]);
  });

  test('the orchestrator refuses agents with a used or an unknown token', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const token = await orchestrator.token('web-1');
    const first = await stage.agent(orchestrator, 'web-1', { token });
    const address = `127.0.0.1:${orchestrator.agentPort}`;
    for (const bad of [token, 'mt_never']) {
      const connect = [address, '--orchestrator-key', orchestrator.publicKey, '--token', bad];
      const program = stage.agentAt(`second-${bad}`, connect).launch();
      await logged(program, 'token_invalid');
      expect(program.events('connected')).toEqual([]);
    }
    expect((await orchestrator.call(listAgents, {})).map(({ node_id }) => node_id)).toEqual([first.nodeId]);
  });

  test('an agent without a pinned key trusts the first orchestrator; log and API report this', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = stage.agentAt('web-1', [`127.0.0.1:${orchestrator.agentPort}`]);
    await agent.start();
    const params = { node_id: agent.nodeId };
    expect(await orchestrator.call(getAgent, { params })).toMatchObject({ status: 'pending', pin_source: 'first_use' });
    expect(agent.program.lastLines(200).join('\n')).toContain(orchestrator.publicKey);
  });
});
