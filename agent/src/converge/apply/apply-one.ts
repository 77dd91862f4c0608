import type { ResourceResult } from '@muster/protocol';
import { isRunning, type ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../../host/failure.ts';
import { killProcessGroup } from '../../host/processes/run-command.ts';
import type { Provider } from '../../resources/provider/provider.ts';
import { Stopped } from '../execution-context.ts';
import { conditionOf } from '../plan/condition.ts';
import type { Decision } from '../plan/decision.ts';
import { whyNoProvider } from '../plan/find-provider.ts';
import { decide } from '../plan/plan.ts';
import type { Step } from '../plan/steps.ts';
import type { StepsState } from '../plan/steps-state.ts';
import { maxResultDelayMs, type Progress } from '../progress.ts';
import { failedResult, noted, resultOf } from '../result.ts';
import { endStep } from './trigger-immediately.ts';

/** Applies a resource that is not recheckable. Writes synced journal entries when it starts and when it finishes. */

export async function applyOne(
  progress: Progress,
  step: Step,
  provider: Provider | null,
  stepsState: StepsState,
): Promise<void> {
  const { journal, crashPoint } = progress.context;
  const started = progress.now();
  const elapsed = () => progress.now() - started;
  const end = async (result: ResourceResult, flush: boolean): Promise<void> => {
    await endStep(progress, step, result, stepsState);
    if (flush || elapsed() > maxResultDelayMs) await progress.flush('results');
  };
  const obstacle = stepsState.obstacle(step, progress.view.desired);
  if (obstacle !== null) return end(resultOf(step, { verdict: 'skip', message: obstacle }, 'changed', 0), false);
  if (provider === null)
    return end(resultOf(step, { verdict: 'fail', message: whyNoProvider(step.resource) }, 'changed', 0), false);
  let again = false;
  const { attempt } = progress.context;
  const ended = progress.takeEnded(step);
  if (ended !== null) return end(ended, true);
  if (progress.operation.step?.position === step.position && attempt.notStarted !== step.position) {
    const result = await settleInterrupted(progress, step, provider, stepsState, started);
    if (result !== null) return end(result, true);
    again = true;
  }
  // Does not check the condition of a step again after it has started.
  const condition = again ? null : await conditionOf(step, stepsState, progress);
  if (condition !== null && 'verdict' in condition) return end(resultOf(step, condition, 'changed', elapsed()), false);
  const observation = await progress.observe(step, stepsState);
  const decision = decide(step, observation, stepsState, journal.copies);
  if (decision.verdict !== 'act' || !('seen' in observation))
    return end(resultOf(step, decision, 'changed', elapsed()), false);
  const machine = progress.view.machine((process) => {
    progress.context.running(process);
    progress.recordProcess(step.position, process, before);
  });
  let before = step.record?.before ?? null;
  try {
    if (step.kind === 'apply' && !(await progress.originalIsLost(step, provider)))
      before = await provider.remember(step.resource, observation.seen, decision.difference, before, machine);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    // Fails the step, because a change without a saved original state could not be reverted.
    return end(failedResult(step, decision, error.message, elapsed()), false);
  }
  // Before this step starts, reports earlier results and journals its start.
  attempt.notStarted = step.position;
  await progress.flush('step', [{ t: 'step', id: progress.id, position: step.position, process: null, before }]);
  attempt.notStarted = null;
  crashPoint('step:synced');
  progress.view.walk.forget();
  let result: ResourceResult;
  try {
    const outcome =
      step.kind === 'apply'
        ? await provider.apply(step.resource, observation.seen, decision.difference, machine)
        : await provider.remove(step.resource, before, observation.seen, decision.difference, machine);
    // The program was killed because the agent is stopping, and may have run partly. The next start determines the
    // result.
    if (progress.context.stopping() && outcome.failure !== undefined) throw new Stopped();
    const reported = again ? noted(decision, `run again, because ${progress.interruption} while it ran`) : decision;
    result = progress.ended(step, reported, outcome, elapsed());
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    result = failedResult(step, decision, error.message, elapsed());
  } finally {
    progress.context.running(null);
    // The program may have changed anything, so cached data is discarded.
    progress.view.stale();
  }
  if (step.kind === 'apply') progress.recordBefore(step.resource.key, before);
  progress.keepEnded(step, result, before);
  crashPoint('step:ended');
  await end(result, true);
}

/**
 * Determines the result of a step during which the agent was killed.
 * @returns null if the step certainly did not finish and must run again
 */
async function settleInterrupted(
  progress: Progress,
  step: Step,
  provider: Provider,
  stepsState: StepsState,
  started: number,
): Promise<ResourceResult | null> {
  const { process = null, before = null } = progress.operation.step ?? {};
  await awaitLeftover(progress, process);
  const { resource } = step;
  const circumstances = stepsState.circumstances(step);
  const elapsed = () => progress.now() - started;
  const difference = {
    action: step.kind === 'remove' ? ('remove' as const) : ('run' as const),
    changes: [],
    diff: null,
  };
  const interrupted: Decision = {
    verdict: 'act',
    difference,
    triggeredBy: circumstances.rerunBy.slice(),
    corrective: false,
  };
  // Does not use `check` in two cases. A trigger forces the run regardless of `check`, so `check` cannot reveal whether
  // the script ran. After a cancellation, the agent has killed the programs that observe, and repeats no step.
  if (provider.revealsCompletion(resource) && circumstances.rerunBy.length === 0 && !progress.interrupted()) {
    try {
      const seen = await provider.observe(resource, circumstances, progress.view.machine());
      const inPlace = provider.diff(resource, seen, circumstances).action === 'none';
      const isDone = inPlace === (step.kind === 'apply');
      // The operation may have been canceled in the meantime.
      if (!progress.interrupted()) {
        if (!isDone) return null;
        if (step.kind === 'apply') progress.recordBefore(resource.key, before);
        const reported = noted(
          interrupted,
          `${progress.interruption} while it ran; its \`check\` reports that it was applied`,
        );
        return resultOf(step, reported, 'changed', elapsed());
      }
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
    }
  }
  if (step.kind === 'apply') progress.recordBefore(resource.key, before);
  const message = `${progress.interruption} while it ran: it may have run partly, and is not run again automatically`;
  return { ...failedResult(step, interrupted, message, elapsed()), status: 'unknown' };
}

/** Waits for a program that outlived the agent, and kills it when its time limit expires. */
export async function awaitLeftover(
  progress: Progress,
  process: ProcessIdentity | null,
  limit: 'scriptMs' | 'packageMs' = 'scriptMs',
): Promise<void> {
  if (process === null) return;
  const { clock, limits } = progress.context;
  const deadline = clock.monotonic() + limits[limit];
  while (isRunning(process)) {
    if (progress.context.stopping()) throw new Stopped();
    if (clock.monotonic() > deadline) killProcessGroup(process.pid);
    await new Promise<void>((resolve) => clock.after(50, resolve));
  }
}
