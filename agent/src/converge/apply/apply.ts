import { stalePlanError } from '@muster/protocol';
import { providerFor } from '../plan/find-provider.ts';
import type { Step } from '../plan/steps.ts';
import { stepsOf } from '../plan/steps-of.ts';
import { StepsState, triggersLeft } from '../plan/steps-state.ts';
import { planDigestNow } from '../plan-operation.ts';
import type { Progress } from '../progress.ts';
import { resultOf } from '../result.ts';
import { verifyApplied } from '../verify.ts';
import { applyTogether, isTogether } from './apply-batch.ts';
import { applyOne } from './apply-one.ts';
import { applyRun } from './apply-run.ts';
import { keepUnreported } from './keep-unreported.ts';

/** Executes an apply. After a restart, executes the remaining steps. */
export async function applyOperation(progress: Progress): Promise<void> {
  const { state } = progress.context.journal;
  const { resources, keep_modules } = progress.operation.message;
  const isResumed = progress.operation.state !== 'accepted';
  let steps: Step[];
  if (progress.operation.state === 'accepted') {
    steps = stepsOf(resources, state.managed, keep_modules);
    progress.setSteps(steps);
    // Checked only before the first change, because the apply's own changes would make the plan stale.
    if (await isPlanStale(progress, steps)) {
      const pending = [...state.pendingTriggers].map(([key, ids]): [string, string[]] => [key, [...ids]]);
      return progress.finish(0, stalePlan, { notRun: 0, pending });
    }
    progress.begin(steps.filter(({ kind }) => kind === 'remove').map(({ resource }) => resource.key));
  } else steps = stepsOfInterrupted(progress);
  progress.setSteps(steps);
  const stepsState = new StepsState('apply', state.pendingTriggers, steps);
  for (const result of progress.operation.results) {
    stepsState.ended(steps[progress.results.length] as Step, result.status);
    progress.results.push(result);
  }
  progress.reported = progress.results.length;
  while (progress.results.length < steps.length && (!progress.interrupted() || wasKilledDuringStep(progress, steps))) {
    const next = steps[progress.results.length] as Step;
    const provider = providerFor(next);
    if (provider !== null && isTogether(provider)) await applyTogether(progress, steps, stepsState, provider);
    else if (provider?.recheckable === true) await applyRun(progress, steps, stepsState);
    else await applyOne(progress, next, provider, stepsState);
  }
  const notRun = steps.length - progress.results.length;
  // Manages resources that a killed agent changed without reporting the change.
  const unreported = notRun > 0 && isResumed ? await keepUnreported(progress, steps) : new Set<number>();
  for (const step of steps.slice(progress.results.length))
    progress.add(
      step,
      resultOf(step, { verdict: 'skip', message: 'skipped, because the operation was canceled' }, 'changed', 0),
    );
  const pending = triggersLeft(
    steps,
    progress.results.map(({ status }, position) => ({ status: unreported.has(position) ? 'changed' : status })),
    state.pendingTriggers,
    notRun > 0 ? null : keep_modules,
    state.managed,
  );
  const verdict = await verified(progress, notRun);
  await progress.finish(steps.length, verdict.error, { notRun: notRun + verdict.notRun, pending });
}

/** Reports whether the agent was killed during the next step and that step cannot be observed again. */
function wasKilledDuringStep({ operation, results, context }: Progress, steps: readonly Step[]): boolean {
  const position = results.length;
  const provider = providerFor(steps[position] as Step);
  return (
    operation.step?.position === position &&
    context.attempt.notStarted !== position &&
    provider?.recheckable === false &&
    !isTogether(provider)
  );
}

/**
 * Verifies the applied resources. Reports the results first, because the resources are in place and a verification may
 * take a long time.
 */
async function verified(progress: Progress, notRun: number): Promise<{ error?: string; notRun: number }> {
  const { verify = [] } = progress.operation.message;
  // If no resource failed, each skipped resource has a condition that is false.
  const isInPlace = notRun === 0 && !progress.results.some(({ status }) => status === 'failed' || status === 'unknown');
  if (!isInPlace || verify.length === 0) return { notRun: 0 };
  await progress.flush('results');
  const problem = await verifyApplied(progress);
  if (progress.interrupted())
    return { error: 'the operation was canceled before `verify` finished; all resources are in place', notRun: 1 };
  return problem === null ? { notRun: 0 } : { error: problem, notRun: 0 };
}

const stalePlan = stalePlanError('the machine has changed since the plan; nothing was applied, plan again');

/** Reports whether the apply is bound to a stale plan, which means that its steps would now have different effects. */
async function isPlanStale(progress: Progress, steps: readonly Step[]): Promise<boolean> {
  const { plan_digest: planned } = progress.operation.message;
  if (planned === undefined) return false;
  const now = await planDigestNow(progress, steps);
  return now !== null && now !== planned;
}

/** Returns the steps of an interrupted operation, with the removals that were determined at its start. */
function stepsOfInterrupted(progress: Progress): Step[] {
  const { message, removals, results } = progress.operation;
  const { managed } = progress.context.journal.state;
  const steps = stepsOf(message.resources, managed, message.keep_modules).filter(({ kind }) => kind === 'apply');
  for (const key of removals) {
    const record = managed.get(key);
    const position = steps.length;
    if (record !== undefined) steps.push({ position, kind: 'remove', resource: record.resource, record });
    // Only the position is needed, because the removal already has a result.
    else if (position < results.length)
      steps.push({ position, kind: 'remove', resource: removedPlaceholder(key), record: null });
    else throw new Error(`the record of ${key} is missing from the journal`);
  }
  return steps;
}

/** Returns a placeholder for a resource whose record was deleted when the resource was removed. */
const removedPlaceholder = (key: string): Step['resource'] => ({
  key,
  module: '',
  id: null,
  name: null,
  type: 'script',
  identity: key,
  body: { program: 'sh', apply: '' },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});
