import { execFile } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getAgent, listAgents, listAudit } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { sampled } from '../lib/test/sampled.ts';
import { muster } from '../tools/suite/cli.ts';
import { eventually } from './eventually.ts';
import { type AgentProcess, type Orchestrator, type Stage, test } from './harness.ts';

interface Rotated {
  code: number;
  stderr: string;
  state: string;
  node_id: string;
  key: string;
  was_waiting: boolean;
}

const rotate = (stage: Stage, { dataDir }: AgentProcess, ...flags: string[]): Promise<Rotated> =>
  new Promise((resolve) => {
    const args = ['agent', 'rotate-key', '--data-dir', dataDir, '--json', ...flags];
    execFile(muster, args, { env: stage.environment() }, (error, stdout, stderr) =>
      resolve({ ...JSON.parse(stdout || '{}'), code: error === null ? 0 : Number(error.code), stderr }),
    );
  });

const keyFile = ({ dataDir }: AgentProcess) => readFileSync(join(dataDir, 'agent.key'), 'utf8');

const rotations = async ({ call }: Orchestrator) =>
  (await call(listAudit, { query: { event_type: 'agent.key_rotated', limit: '100' } })).events;

/** Waits until the agent is connected and has no pending key. */
const settled = ({ call }: Orchestrator, agent: AgentProcess) =>
  eventually('the agent is connected with its new key', async () => {
    const { connected } = await call(getAgent, { params: { node_id: agent.nodeId } });
    return connected && !existsSync(join(agent.dataDir, 'agent.key.next')) ? true : null;
  });

describe('key rotation of an agent', () => {
  test('a key rotation takes effect immediately, keeps the agent’s identity, and invalidates copies of the previous key', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const { nodeId } = agent;
    const copy = stage.agentAt('copy', [`127.0.0.1:${orchestrator.agentPort}`]);
    for (const name of ['agent.key', 'orchestrator.json']) cpSync(join(agent.dataDir, name), join(copy.dataDir, name));

    const rotated = await rotate(stage, agent, '--at-once');
    expect(rotated, rotated.stderr).toMatchObject({ code: 0, state: 'in_force', node_id: nodeId, was_waiting: false });
    expect(keyFile(agent)).not.toBe(keyFile(copy));
    await settled(orchestrator, agent);
    expect(await rotations(orchestrator)).toMatchObject([
      { severity: 'warning', target: { id: nodeId, name: 'web-1' }, metadata: { key: rotated.key } },
    ]);

    const program = copy.launch();
    await eventually('the copy is refused', async () =>
      program.lastLines(200).some((line) => line.includes('"key_replaced"')) ? true : null,
    );
    const events = await eventually('the audit log contains the refusal', async () => {
      const found = await orchestrator.call(listAudit, { query: { event_type: 'agent.refused' } });
      return found.events.length > 0 ? found.events : null;
    });
    expect(events).toMatchObject([{ target: { id: nodeId }, metadata: { code: 'key_replaced' } }]);
    expect(await orchestrator.call(listAgents, {})).toMatchObject([{ node_id: nodeId, connected: true }]);

    // The agent keeps its ID after a restart, even though the ID is no longer derived from its key.
    await agent.stop();
    await agent.start();
    expect(agent.nodeId).toBe(nodeId);
  });

  test('a key rotation survives kill -9 of either program at any time', async ({ stage }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const { nodeId } = agent;
    let changes = 0;
    for (const killed of ['agent', 'orchestrator'] as const)
      for (const afterMs of sampled([0, 20], 1)) {
        const former = keyFile(agent);
        const rotating = rotate(stage, agent);
        await eventually('the agent has a new key', async () =>
          existsSync(join(agent.dataDir, 'agent.key.next')) || keyFile(agent) !== former ? true : null,
        );
        await sleep(afterMs);
        const part = { agent, orchestrator }[killed];
        await part.kill9();
        await part.start();
        if (killed === 'orchestrator') {
          // Restarts the agent, so that it starts with the minimum backoff instead of up to a minute.
          await agent.stop();
          await agent.start();
        }
        await settled(orchestrator, agent);
        expect(keyFile(agent), `${killed} after ${afterMs} ms`).not.toBe(former);
        const rotated = await rotating;
        expect(rotated.node_id, rotated.stderr).toBe(nodeId);
        // The exit code is 5 if the agent was not running when the command checked.
        expect([0, 5]).toContain(rotated.code);
        expect(await rotations(orchestrator)).toHaveLength(++changes);
      }
    expect(await orchestrator.call(listAgents, {})).toMatchObject([{ node_id: nodeId, connected: true }]);
    await agent.stop();
    await agent.start();
    expect(agent.nodeId).toBe(nodeId);
  });

  test('an orchestrator accepts a newer agent key after a restore, and a rotation waits until the agent runs', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const agent = await stage.agent(orchestrator, 'web-1');
    const { nodeId } = agent;
    await agent.stop();
    await orchestrator.stop();
    const before = join(stage.dir, 'before');
    cpSync(orchestrator.dataDir, before, { recursive: true });
    await orchestrator.start();
    expect(await rotate(stage, agent)).toMatchObject({ code: 5, state: 'waiting' });
    expect(await rotate(stage, agent)).toMatchObject({ code: 5, state: 'waiting', was_waiting: true });
    await agent.start();
    await settled(orchestrator, agent);
    const key = keyFile(agent);
    const forgotten = await rotations(orchestrator);
    expect(forgotten).toHaveLength(1);
    await agent.stop();
    await orchestrator.stop();
    for (const name of ['muster.db', 'muster.db-wal', 'muster.db-shm']) {
      rmSync(join(orchestrator.dataDir, name), { force: true });
      if (existsSync(join(before, name))) cpSync(join(before, name), join(orchestrator.dataDir, name));
    }
    await orchestrator.start();
    expect(await rotations(orchestrator)).toEqual([]);
    await agent.start();
    await settled(orchestrator, agent);
    expect(keyFile(agent)).toBe(key);
    expect(await rotations(orchestrator)).toMatchObject([{ metadata: forgotten[0]!.metadata }]);
    expect(await orchestrator.call(listAgents, {})).toMatchObject([{ node_id: nodeId, connected: true }]);
  });
});
