import { hash } from 'node:crypto';
import type { ResolvedResource } from '@muster/protocol/module';
import { type JournalState, newOperation, type OperationRecord } from '../journal/state.ts';
import { type ExecutionContext, Stopped } from './execution-context.ts';
import { conditionOf } from './plan/condition.ts';
import type { Decision } from './plan/decision.ts';
import { decide } from './plan/plan.ts';
import type { Step } from './plan/steps.ts';
import { StepsState } from './plan/steps-state.ts';
import { Progress } from './progress.ts';

/** Observes individual resources as a drift check does, but without an operation or a report. */

/**
 * Returns a fingerprint of the differences between a resource and its applied state: equal for equal differences, and
 * empty if there are none. The fingerprint never leaves the machine.
 */
export function differenceFingerprint(decision: Decision): string {
  if (decision.verdict === 'none' || decision.verdict === 'skip') return '';
  const differs =
    'message' in decision
      ? [decision.verdict, decision.message]
      : [decision.difference.action, decision.difference.changes, decision.difference.diff];
  return hash('sha256', JSON.stringify(differs), 'base64');
}

/** Compares an applied resource with the machine. Skips a resource whose condition is currently false. */
export async function driftOf(step: Step, progress: Progress, stepsState: StepsState): Promise<Decision> {
  const condition = await conditionOf(step, stepsState, progress);
  if ('verdict' in condition) return condition;
  return decide(step, await progress.observe(step, stepsState), stepsState, progress.context.journal.copies);
}

/** Returns the resources from the last successful apply, against which drift is measured. */
export const appliedResources = ({ snapshot }: JournalState): readonly ResolvedResource[] => snapshot?.resources ?? [];

const noOperation: OperationRecord = {
  ...newOperation({
    type: 'operation',
    operation_id: '',
    kind: 'drift',
    modules: [],
    resources: [],
    keep_modules: [],
    snapshot_operation_id: null,
  }),
  state: 'running',
  acceptedReported: true,
};

/**
 * Observes some of the applied resources.
 * @param applied all applied resources, because a resource may depend on what others declare
 * @returns the fingerprints of the resources with the given keys, by key; null if the agent is stopping or an operation
 *   has started
 */
export async function observeResources(
  applied: readonly ResolvedResource[],
  keys: ReadonlySet<string>,
  context: ExecutionContext,
): Promise<Map<string, string> | null> {
  const { state } = context.journal;
  const progress = new Progress(noOperation, context);
  try {
    const stepsState = new StepsState('drift', new Map(), []);
    const steps = applied.map((resource, position): Step => {
      return { position, kind: 'apply', resource, record: state.managed.get(resource.key) ?? null };
    });
    progress.setSteps(steps);
    const fingerprints = new Map<string, string>();
    for (const step of steps) {
      if (progress.interrupted()) return null;
      if (!keys.has(step.resource.key)) continue;
      fingerprints.set(step.resource.key, differenceFingerprint(await driftOf(step, progress, stepsState)));
      await progress.yieldIfDue();
    }
    return context.stopping() ? null : fingerprints;
  } catch (error) {
    if (error instanceof Stopped) return null;
    throw error;
  } finally {
    progress.view.walk.close();
  }
}
