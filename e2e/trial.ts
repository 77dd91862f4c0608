import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  applyAgent,
  getAgent,
  listAgentOperations,
  type Operation,
  planAgent,
  uploadModule,
} from '@muster/protocol/http';
import { expect } from 'vitest';
import { ended, eventually } from './eventually.ts';
import type { AgentProcess, Orchestrator, Stage } from './harness.ts';
import { pagePath, runsOf, siteModule } from './site.ts';

/** When to kill a process: a number of milliseconds after the apply started, or while its script is running. */
export type Moment = number | 'script';

const reached = (moment: Moment, root: string): Promise<unknown> =>
  moment === 'script'
    ? eventually('the script is running', async () => (existsSync(`${root}/started`) ? true : null))
    : sleep(moment);

export interface Trial {
  orchestrator: Orchestrator;
  agent: AgentProcess;
  root: string;
  operationId: string;
}

/** Uploads a site, starts an apply, and waits until it is time to kill a process. */
export async function startTrial(
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

/** Expects that the operation succeeds after the agent was killed, that its script ran once, and that it reported each resource once. */
export async function expectDone({ orchestrator, agent, root, operationId }: Trial, name: string): Promise<void> {
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
  const reported = resources.map(({ module, type, identity }) => `${module} ${type} ${identity}`);
  expect(new Set(reported).size).toBe(reported.length);
  expect(summary.total).toBe(reported.length);
  expect(summary.failed).toBe(0);
}

export const connected = ({ orchestrator, agent }: { orchestrator: Orchestrator; agent: AgentProcess }) =>
  eventually('the agent is connected', async () => {
    const { connected } = await orchestrator.call(getAgent, { params: { node_id: agent.nodeId } });
    return connected ? true : null;
  });
