import type { Json } from '../../resources/provider/provider.ts';
import { providerFor } from '../plan/find-provider.ts';
import type { Step } from '../plan/steps.ts';
import { StepsState } from '../plan/steps-state.ts';
import type { Progress } from '../progress.ts';

/**
 * Journals changes that an operation made but could not report, so that they stay managed.
 * @param steps all steps of the operation
 * @returns positions of the resources that changed
 */
export async function keepUnreported(progress: Progress, steps: readonly Step[]): Promise<Set<number>> {
  const { operation, context } = progress;
  const { intents, step: started } = operation;
  const stepsState = new StepsState('apply', context.journal.state.pendingTriggers, steps);
  const changed = new Set<number>();
  for (const step of steps) {
    if (step.kind !== 'apply') continue;
    const intent = intents.get(step.position);
    if (intent !== undefined && (await wasChanged(progress, step, intent.seen, stepsState))) {
      progress.recordBefore(step.resource.key, intent.before);
      changed.add(step.position);
    }
    if (started?.position === step.position) progress.recordBefore(step.resource.key, started.before);
  }
  return changed;
}

/** Reports whether a resource differs from its state before the operation; true if that is unknown. */
async function wasChanged(progress: Progress, step: Step, seen: Json, stepsState: StepsState): Promise<boolean> {
  const provider = providerFor(step);
  try {
    const now = await progress.observe(step, stepsState);
    if (provider === null || !('seen' in now)) return true;
    return JSON.stringify(seen) !== JSON.stringify(provider.inBrief(now.seen));
  } catch {
    return true;
  }
}
