import type { ResourceResult } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import type { Item, Json, Outcome, Provider } from '../../resources/provider/provider.ts';
import { Stopped } from '../execution-context.ts';
import { conditionOf, satisfied } from '../plan/condition.ts';
import type { Decision } from '../plan/decision.ts';
import { providerFor } from '../plan/find-provider.ts';
import { decide, planStep } from '../plan/plan.ts';
import type { Step } from '../plan/steps.ts';
import type { StepsState } from '../plan/steps-state.ts';
import type { Progress } from '../progress.ts';
import { noted, resultOf } from '../result.ts';
import { awaitLeftover } from './apply-one.ts';
import { claimIfNew, completedRecord, isUnmet, rememberPartial } from './apply-run.ts';
import { endStep, servedEarly } from './trigger-immediately.ts';

/**
 * Applies adjacent resources of one type together, such as packages in one transaction. Observes all of them and
 * journals them in one synced entry. If the agent is killed, the next agent waits for the started process and observes
 * again to determine which resources were finished.
 */

const maxBatch = 512;

type Together = Provider & Required<Pick<Provider, 'together'>>;
export const isTogether = (provider: Provider): provider is Together => provider.together !== undefined;
type Act = Extract<Decision, { verdict: 'none' | 'act' }>;

interface Planned {
  step: Step;
  provider: Together;
  /** The observation; null if the resource could not or need not be observed. */
  seen: { it: unknown } | null;
  decision: Decision;
  before: Json | null;
  /** Whether the journal contains the intent of this step. */
  isRecorded: boolean;
  /** The decision before the agent was killed; null on the first attempt, or if no change was needed. */
  original: Act | null;
  /** Whether `original` was finished before the agent was killed. */
  wasFinished: boolean;
  /** The change that was applied early, if nothing else remains to be done for this step. */
  early: Act | null;
}

export async function applyTogether(
  progress: Progress,
  steps: readonly Step[],
  stepsState: StepsState,
  provider: Together,
): Promise<void> {
  const started = progress.now();
  const first = progress.results.length;
  if (progress.operation.intents.has(first) || progress.operation.step?.position === first)
    await recover(progress, provider);
  const batch = await planBatch(progress, steps, stepsState, provider);
  await recordIntents(progress, batch);
  const due = batch.filter(
    ({ decision, seen, wasFinished, early }) =>
      decision.verdict === 'act' && seen !== null && !wasFinished && early === null,
  );
  const outcomes = due.length === 0 ? [] : await executeBatch(progress, provider, due);
  const averageMs = (progress.now() - started) / batch.length;
  for (const planned of batch) {
    const outcome = outcomes[due.indexOf(planned)] ?? null;
    const result = await resultFor(progress, planned, outcome, averageMs);
    await endStep(progress, planned.step, result, stepsState);
  }
  if (due.length === 0) return progress.yieldIfDue();
  progress.context.crashPoint('batch:ended');
  await progress.flush('results');
}

/** Waits for the processes of a killed agent, and prepares the machine for observation. */
async function recover(progress: Progress, provider: Together): Promise<void> {
  await awaitLeftover(progress, progress.operation.step?.process ?? null, 'packageMs');
  try {
    await provider.recover?.(progress.view.machine());
  } catch (error) {
    // Each resource then reports the failure itself.
    if (!(error instanceof HostFailure)) throw error;
    progress.context.warn({ operation_id: progress.id, error: error.message }, 'failed to repair an interrupted batch');
  }
  progress.view.stale();
}

/** Observes adjacent resources until one depends on another, and decides what to do with each. */
async function planBatch(
  progress: Progress,
  steps: readonly Step[],
  stepsState: StepsState,
  provider: Together,
): Promise<Planned[]> {
  const { copies } = progress.context.journal;
  const forecast = stepsState.forecast();
  const batch: Planned[] = [];
  const planned = new Set<string>();
  const first = progress.results.length;
  for (const step of steps.slice(first, first + maxBatch)) {
    const { resource } = step;
    if (step.kind !== steps[first]?.kind || providerFor(step) !== provider) break;
    const needs = [...resource.depends_on, ...resource.reload_on, ...resource.restart_on, ...resource.rerun_on];
    if (needs.some((key) => planned.has(key))) break;
    planned.add(resource.key);
    const intent = progress.operation.intents.get(step.position) ?? null;
    const hasWork = batch.some(({ decision }) => decision.verdict === 'act');
    // Stops here if an earlier change may affect the condition, which must be evaluated after that change.
    if (hasWork && intent === null && resource.only_if !== undefined && !('exists' in resource.only_if)) break;
    const condition = intent === null ? await conditionOf(step, forecast, progress) : satisfied;
    if ('verdict' in condition && hasWork) break;
    const observe = () => progress.observe(step, forecast);
    const ask = () => condition;
    const { decision, observation } = await planStep(step, observe, forecast, progress.view.desired, copies, ask);
    // Skipped resources must be in the journal first, because their conditions may be true when the agent resumes after
    // it was killed.
    if (decision.verdict === 'act' && intent === null && batch.some(isUnmet)) break;
    const seen = observation !== null && 'seen' in observation ? { it: observation.seen } : null;
    const intended = intent === null ? null : decide(step, { seen: intent.seen }, forecast, copies);
    const original = intended?.verdict === 'act' ? intended : null;
    const early = servedEarly(step, decision, stepsState);
    // An early execution may not have handled triggers that became due after that execution.
    const isSettled = intent !== null && (intent.isEarly !== true || decision.verdict === 'none');
    const wasFinished =
      early === null &&
      isSettled &&
      original !== null &&
      seen !== null &&
      wasApplied(provider, step, decision, intent.seen, seen.it, original);
    // A change that leaves no trace, such as a restart, counts as unfinished and is repeated.
    const due =
      early === null && original !== null && seen !== null && !wasFinished && decision.verdict === 'none'
        ? original
        : decision;
    const before = intent?.before ?? step.record?.before ?? null;
    batch.push({
      step,
      provider,
      seen,
      decision: due,
      before,
      isRecorded: intent !== null,
      original,
      wasFinished,
      early,
    });
    // Services that are triggered immediately are applied before the next resource.
    if (progress.triggeredImmediately(step).length > 0) break;
    await progress.yieldIfDue();
  }
  return batch;
}

/** Reports whether the change was finished when the agent was killed. */
function wasApplied(
  provider: Together,
  { kind, resource }: Step,
  now: Decision,
  brief: Json,
  seen: unknown,
  original: Act,
): boolean {
  if (now.verdict === 'fail') return false;
  // A removal is not finished if the resource still exists.
  if (kind === 'remove' && now.verdict === 'act') return false;
  if (provider.wasApplied === undefined) return now.verdict === 'none';
  return provider.wasApplied(resource, brief, seen, original.difference);
}

/**
 * Journals all intended changes in one synced entry, together with the current state and everything needed to restore
 * it.
 */
async function recordIntents(progress: Progress, batch: readonly Planned[]): Promise<void> {
  const entries: { position: number; seen: Json; before: Json | null }[] = [];
  const machine = progress.view.machine();
  for (const planned of batch) {
    const { step, provider, decision, seen } = planned;
    if (decision.verdict !== 'act' || seen === null || planned.isRecorded) continue;
    try {
      if (step.kind === 'apply')
        planned.before = (await progress.originalIsLost(step, provider))
          ? null
          : await provider.remember(step.resource, seen.it, decision.difference, planned.before, machine);
      entries.push({ position: step.position, seen: provider.inBrief(seen.it), before: planned.before });
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      // Fails the step, because a change without a saved original state could not be reverted.
      planned.decision = { verdict: 'fail', message: error.message };
    }
  }
  if (entries.length === 0) return;
  progress.context.journal.copies.sync();
  await progress.flush('together', [{ t: 'intents', id: progress.id, entries }]);
  progress.context.crashPoint('batch:synced');
}

/**
 * Applies the resources that need a change.
 * @returns one outcome for each, in order
 */
async function executeBatch(progress: Progress, provider: Together, due: readonly Planned[]): Promise<Outcome[]> {
  const { running, stopping } = progress.context;
  const position = progress.results.length;
  const machine = progress.view.machine((process, fate) => {
    // The program may outlive the agent, so it is not killed when the agent stops.
    if (fate !== 'left') running(process);
    progress.recordProcess(position, process, null);
  });
  const items = due.map(
    ({ step, seen, decision, before }): Item => ({
      kind: step.kind,
      resource: step.resource,
      seen: seen?.it,
      difference: (decision as Act).difference,
      before,
    }),
  );
  progress.view.walk.forget();
  try {
    const outcomes = await provider.together(items, machine);
    // The transaction is still running or was killed because the agent is stopping. The next start determines which
    // resources were finished.
    if (stopping() && outcomes.some(({ failure }) => failure !== undefined)) throw new Stopped();
    return outcomes;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    if (stopping()) throw new Stopped();
    return due.map(() => ({ failure: error.message }));
  } finally {
    running(null);
    progress.view.stale();
  }
}

async function resultFor(
  progress: Progress,
  planned: Planned,
  outcome: Outcome | null,
  ms: number,
): Promise<ResourceResult> {
  const { step, provider, seen, original, before, wasFinished, decision, early } = planned;
  const { resource, kind } = step;
  const record = (now: Json | null) => {
    if (kind === 'apply') progress.recordBefore(resource.key, now);
  };
  if (early !== null) {
    record(before);
    return resultOf(step, early, 'changed', ms);
  }
  if (wasFinished && original !== null) {
    record(kind === 'apply' ? await completedRecord(progress, planned) : before);
    return resultOf(step, noted(original, `applied before ${progress.interruption}`), 'changed', ms);
  }
  if (outcome === null) {
    const claims = decision.verdict === 'none' && kind === 'apply';
    const fault = claims ? claimIfNew(progress, step, provider) : null;
    return resultOf(step, fault ?? decision, 'changed', ms);
  }
  if (outcome.failure === undefined) record(before === null ? null : (outcome.before ?? before));
  // Partial changes of a failed step must stay restorable.
  else if (kind === 'apply' && seen !== null)
    await rememberPartial(progress, { step, provider, before: outcome.before ?? before }, seen.it);
  const reported = original === null ? decision : noted(original, `resumed after ${progress.interruption}`);
  return progress.ended(step, reported, outcome, ms);
}
