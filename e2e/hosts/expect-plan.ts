import { planAgent } from '@muster/protocol/http';
import { expect } from 'vitest';
import type { Orchestrator } from '../harness.ts';

/** Expects that an agent can plan a module: no resource fails, and resources are skipped only because of `only_if`. */
export async function expectPlan(orchestrator: Orchestrator, nodeId: string, module: string): Promise<void> {
  const { status, resources } = await orchestrator.call(planAgent, {
    params: { node_id: nodeId },
    body: { modules: [module] },
  });
  const failed = resources.filter(
    ({ status, message }) =>
      !['would_change', 'unchanged'].includes(status) && !(status === 'skipped' && message?.endsWith('(`only_if`)')),
  );
  expect({ name: module, status, failed }).toEqual({ name: module, status: 'succeeded', failed: [] });
}
