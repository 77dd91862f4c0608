import { createHash } from 'node:crypto';
import type { ResolvedResource } from '@muster/protocol/module';
import type { JournalState, OperationRecord } from '../journal/state.ts';
import { type Decision, decide, Picture, type Step } from './plan/plan.ts';
import { type ExecutionContext, Progress, Stopped } from './progress.ts';

/** Looking at single resources as a drift check does, without an operation and without telling anybody. */

/** How a resource looks beside what was applied; the same text means the same; empty: as applied. Stays on the machine. */
export function lookOf(decision: Decision): string {
  if (decision.verdict === 'none') return '';
  const differs =
    'message' in decision
      ? [decision.verdict, decision.message]
      : [decision.difference.action, decision.difference.changes, decision.difference.diff];
  return createHash('sha256').update(JSON.stringify(differs)).digest('base64');
}

/** What drift is measured against: the last apply that succeeded. */
export const appliedResources = ({ snapshot }: JournalState): readonly ResolvedResource[] => snapshot?.resources ?? [];

const noOperation: OperationRecord = {
  message: {
    type: 'operation',
    operation_id: '',
    kind: 'drift',
    modules: [],
    resources: [],
    keep_modules: [],
    snapshot_operation_id: null,
  },
  state: 'running',
  acceptedReported: true,
  cancelled: false,
  startedAt: null,
  removals: [],
  intents: new Map(),
  step: null,
  befores: new Map(),
  results: [],
  freshDirectories: new Set(),
  finished: null,
};

/** @returns by key; null when it was cut off because the context is stopping */
export async function lookAt(
  resources: readonly ResolvedResource[],
  context: ExecutionContext,
): Promise<Map<string, string> | null> {
  const { state, copies } = context.journal;
  const progress = new Progress(noOperation, context);
  try {
    const picture = new Picture('drift', new Map(), []);
    const steps = resources.map((resource, position): Step => {
      return { position, kind: 'apply', resource, record: state.managed.get(resource.key) ?? null };
    });
    progress.over(steps);
    const looks = new Map<string, string>();
    for (const step of steps) {
      if (progress.interrupted()) return null;
      looks.set(step.resource.key, lookOf(decide(step, await progress.observe(step, picture), picture, copies)));
      await progress.breathe();
    }
    return context.stopping() ? null : looks;
  } catch (error) {
    if (error instanceof Stopped) return null;
    throw error;
  } finally {
    progress.close();
  }
}
