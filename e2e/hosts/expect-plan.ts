import { planAgent } from '@muster/protocol/http';
import { expect } from 'vitest';
import type { Orchestrator } from '../harness.ts';

/** Expects that an agent can plan modules: no resource fails, and resources are skipped only because of `only_if`. */
export async function expectPlan(orchestrator: Orchestrator, nodeId: string, ...modules: string[]): Promise<void> {
  const { status, resources } = await orchestrator.call(planAgent, {
    params: { node_id: nodeId },
    body: { modules },
  });
  const failed = resources.filter(
    ({ status, message }) =>
      !['would_change', 'unchanged'].includes(status) && !(status === 'skipped' && message?.endsWith('(`only_if`)')),
  );
  expect({ modules, status, failed }).toEqual({ modules, status: 'succeeded', failed: [] });
}
