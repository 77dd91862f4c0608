import { setTimeout as sleep } from 'node:timers/promises';
import {
  applyAssignment,
  createAssignment,
  getRun,
  listAgents,
  listOperations,
  type Run,
  uploadModule,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';
import { type FleetWatch, simulatedFleet } from './simulated-fleet.ts';

const size = 12;
const rounds = 3;
const batch = 4;
const module = `name: motd
supports: [{ platform: linux }]
resources: [{ id: motd, resource: { file-unix: { path: /etc/motd, content: hi } } }]
`;

describe('kill -9 of the orchestrator during a run', () => {
  test('a run yields one result per agent, respects its limits, and repeats no operation when the orchestrator is killed', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const atWork = new Set<string>();
    const started: string[] = [];
    let maxAtWork = 0;
    let fails = 0;
    const repeated: string[] = [];
    const watch: FleetWatch = {
      onStarted: (nodeId, operationId) => {
        started.push(operationId);
        atWork.add(nodeId);
        maxAtWork = Math.max(maxAtWork, atWork.size);
      },
      onEnded: (nodeId) => atWork.delete(nodeId),
      onRepeated: (_, operationId) => repeated.push(operationId),
      judge: () => ({ status: Math.random() < fails ? 'failed' : 'succeeded', afterMs: Math.random() * 60 }),
    };
    const tags = { role: 'sim' };
    const port = () => orchestrator.agentPort;
    const fleet = await simulatedFleet(size, (name) => orchestrator.token(name, tags), port, watch);
    const running = fleet.map((agent) => agent.run());
    try {
      const everybody = () =>
        eventually('all agents are connected', async () => {
          const agents = await call(listAgents, { query: { status: 'approved' } }).catch(() => []);
          return agents.filter(({ connected }) => connected).length === size ? true : null;
        });
      await everybody();
      await call(uploadModule, { body: { name: 'motd', content: module } });
      await call(createAssignment, { body: { name: 'sims', modules: ['motd'], selector: 'role=sim' } });
      for (let round = 0; round < rounds; round++) {
        fails = round % 2 === 0 ? 0 : 0.4;
        const body = { batch, canary: 2, max_failures: 3, ...(round % 3 === 2 ? { offline: 'queue' as const } : {}) };
        const { run_id } = await call(applyAssignment, { params: { name: 'sims' }, body, respondAsync: true });
        let halted = false;
        const look = async (): Promise<Run> => {
          const run = await call(getRun, { params: { run_id } });
          expect(run.results).toHaveLength(size);
          if (halted) expect(run.status).toBe('halted');
          halted = run.status === 'halted';
          return run;
        };
        await sleep(Math.random() * 150);
        await orchestrator.kill9();
        await orchestrator.start();
        await look();
        const run = await eventually('the run has ended', async () => {
          const run = await look();
          return run.finished_at === null ? null : run;
        });
        const startedCount = started.length;
        const statuses = Map.groupBy(run.results, ({ status }) => status);
        const had = run.results.filter(({ operation_id, status }) => operation_id !== null && status !== 'cancelled');
        expect(new Set(run.results.map(({ node_id }) => node_id)).size).toBe(size);
        expect([...statuses.keys()].filter((status) => status === 'queued' || status === 'running')).toEqual([]);
        if (run.status === 'succeeded') expect(statuses.get('succeeded')).toHaveLength(size);
        // No agent starts after more than three failures, but a batch that is already running may fail as well.
        if (run.status === 'failed') expect(statuses.get('failed')?.length).toBeLessThanOrEqual(3 + batch);
        if (run.status === 'halted')
          expect(run.results.every(({ status }) => ['succeeded', 'failed', 'cancelled'].includes(status))).toBe(true);
        // Each agent has at most one operation in the run, and has received the operation that the run reports.
        const { operations } = await call(listOperations, { query: { limit: '500' } });
        const ofRun = operations.filter((operation) => operation.run_id === run_id);
        expect(new Set(ofRun.map(({ node_id }) => node_id)).size).toBe(ofRun.length);
        for (const { operation_id } of had) expect(started).toContain(operation_id);
        expect(atWork.size).toBe(0);
        expect(started.length).toBe(startedCount);
        await everybody();
      }
      expect(maxAtWork).toBeLessThanOrEqual(batch);
      expect(repeated).toEqual([]);
      expect(new Set(started).size).toBe(started.length);
    } finally {
      for (const agent of fleet) agent.stop();
      await Promise.all(running);
    }
  });
});
