import { conditionOf } from './plan/condition.ts';
import { planStep } from './plan/plan.ts';
import { PlanDigest } from './plan/plan-digest.ts';
import type { Step } from './plan/steps.ts';
import { stepsOf } from './plan/steps-of.ts';
import { StepsState } from './plan/steps-state.ts';
import { maxResultDelayMs, type Progress } from './progress.ts';
import { resultOf } from './result.ts';

/** Executes a plan. It only observes and decides, so it starts over after a crash. */
export async function planOperationOnMachine(progress: Progress): Promise<void> {
  const { state, copies } = progress.context.journal;
  progress.begin([]);
  const { resources, keep_modules } = progress.operation.message;
  const steps = stepsOf(resources, state.managed, keep_modules);
  progress.setSteps(steps);
  const stepsState = new StepsState('plan', state.pendingTriggers, steps);
  const digest = new PlanDigest(progress.context.planKey);
  for (const step of steps) {
    if (progress.interrupted()) break;
    const started = progress.now();
    const observe = () => progress.observe(step, stepsState);
    const ask = () => conditionOf(step, stepsState, progress);
    const { decision } = await planStep(step, observe, stepsState, progress.view.desired, copies, ask);
    digest.add(step, decision);
    progress.add(step, resultOf(step, decision, 'would_change', progress.now() - started));
    if (progress.now() - progress.flushedAt > maxResultDelayMs) await progress.flush('results');
    else await progress.yieldIfDue();
  }
  progress.planDigest = digest.hex();
  await progress.finish(steps.length);
}

/**
 * Returns the digest of a plan for the given steps on the current machine. Observes and decides as a plan does, but
 * reports nothing.
 * @returns null if the operation was canceled
 */
export async function planDigestNow(progress: Progress, steps: readonly Step[]): Promise<string | null> {
  const { state, copies } = progress.context.journal;
  const stepsState = new StepsState('plan', state.pendingTriggers, steps);
  const digest = new PlanDigest(progress.context.planKey);
  for (const step of steps) {
    if (progress.interrupted()) return null;
    const observe = () => progress.observe(step, stepsState);
    const ask = () => conditionOf(step, stepsState, progress);
    const { decision } = await planStep(step, observe, stepsState, progress.view.desired, copies, ask);
    digest.add(step, decision);
    await progress.yieldIfDue();
  }
  progress.view.walk.forget();
  return digest.hex();
}
