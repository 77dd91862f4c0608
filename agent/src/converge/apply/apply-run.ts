import type { ResourceResult } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import type { Intent } from '../../journal/state.ts';
import { removeEmptyDirectory } from '../../resources/directory-unix/directory-unix.ts';
import type { Json, Provider } from '../../resources/provider/provider.ts';
import { conditionOf, satisfied } from '../plan/condition.ts';
import type { Decision, Observation } from '../plan/decision.ts';
import { providerFor } from '../plan/find-provider.ts';
import { decide, planStep } from '../plan/plan.ts';
import { ancestors, changedPaths } from '../plan/step-paths.ts';
import type { Step } from '../plan/steps.ts';
import { StepsState } from '../plan/steps-state.ts';
import { maxResultDelayMs, type Progress } from '../progress.ts';
import { failedResult, noted, resultOf } from '../result.ts';
import { endStep } from './trigger-immediately.ts';

/**
 * Applies a run of recheckable resources: observes all of them, journals them in one synced entry, and then applies
 * them. If the agent is killed, observing again shows which changes were finished.
 */

/** Maximum total size of the file contents that a run holds in memory, in bytes. */
const runBytes = 16 * 1024 * 1024;
const maxRun = 1024;
/** Maximum number of files to write to disk at the same time. */
const maxInFlight = 32;

interface PlannedStep {
  step: Step;
  provider: Provider;
  /** The observation; null if the resource needs no change. */
  observation: Observation | null;
  decision: Decision;
  /** The decision before the agent was killed; null on the first attempt, or if no change was needed. */
  original: Decision | null;
  before: Json | null;
  /** State before this operation, if the resource is restored when a service fails after the change. */
  former: Json | null;
  /** Whether the journal already contains the intent of this step. */
  known: boolean;
}

export async function applyRun(progress: Progress, steps: readonly Step[], stepsState: StepsState): Promise<void> {
  const run = await planRun(progress, steps, stepsState);
  await recordIntents(progress, run);
  // Writes files concurrently as long as none depends on another. Reports their results in order.
  let inFlight: { planned: PlannedStep; result: Promise<ResourceResult> }[] = [];
  const awaitInFlight = async (): Promise<void> => {
    const awaited = inFlight;
    inFlight = [];
    // Waits for all results before handling the first failure, so that no write is in progress when the path walk is
    // closed.
    await Promise.allSettled(awaited.map(({ result }) => result));
    for (const { planned, result } of awaited) {
      await endStep(progress, planned.step, await result, stepsState, planned.former);
    }
    progress.context.crashPoint('resource:after');
    if (progress.now() - progress.flushedAt > maxResultDelayMs) await progress.flush('results');
    else await progress.yieldIfDue();
  };
  const needs = ({ resource }: Step): boolean =>
    inFlight.some(({ planned }) => resource.depends_on.includes(planned.step.resource.key));
  try {
    for (const planned of run) {
      const { step } = planned;
      const alone = step.kind === 'remove' || step.resource.type !== 'file-unix';
      const ending = progress.context.stopping() || progress.operation.cancelled;
      if (inFlight.length >= maxInFlight || (inFlight.length > 0 && (alone || ending || needs(step))))
        await awaitInFlight();
      if (progress.interrupted()) break;
      progress.context.crashPoint('resource:before');
      inFlight.push({ planned, result: attempt(progress, planned, stepsState) });
      if (alone) await awaitInFlight();
    }
    await awaitInFlight();
  } catch (error) {
    // Waits even after an internal bug, because unfinished writes would interfere with the next attempt.
    await Promise.allSettled(inFlight.map(({ result }) => result));
    throw error;
  }
  progress.view.walk.forget();
}

async function attempt(progress: Progress, planned: PlannedStep, stepsState: StepsState): Promise<ResourceResult> {
  const { step } = planned;
  const started = progress.now();
  const obstacle = stepsState.obstacle(step, progress.view.desired);
  if (obstacle !== null) return resultOf(step, { verdict: 'skip', message: obstacle }, 'changed', 0);
  return step.kind === 'apply'
    ? applyPlanned(progress, planned, started)
    : removePlanned(progress, planned, stepsState, started);
}

/** Observes the resources of a run, and decides what to do with each as if all earlier ones succeeded. */
async function planRun(progress: Progress, steps: readonly Step[], stepsState: StepsState): Promise<PlannedStep[]> {
  const { copies } = progress.context.journal;
  const run: PlannedStep[] = [];
  const forecast = stepsState.forecast();
  progress.results.forEach(({ action, status }, i) => {
    const step = steps[i] as Step;
    if (step.kind === 'remove' && action === 'remove' && status === 'changed') forecast.removed(step);
  });
  /** Resources at or below these paths must be observed after the earlier ones are applied. */
  const changed = new Set<string>();
  let bytes = 0;
  let hasWork = false;
  let hasUnmet = false;
  for (let position = progress.results.length; position < steps.length && run.length < maxRun; position++) {
    const step = steps[position] as Step;
    const provider = providerFor(step);
    if (provider?.recheckable !== true || provider.together !== undefined || bytes > runBytes) break;
    // A resource whose path is below a future link, refers to the same file, or is created by another resource can only
    // be observed after that other resource has been applied.
    const path = provider.path(step.resource);
    const needed = [...(path === null ? [] : [path]), ...(provider.reads?.(step.resource) ?? [])];
    const isChanged = (each: string) => [each, ...ancestors(each)].some((part) => changed.has(part));
    if (changed.size > 0 && needed.some(isChanged)) break;
    if (run.length > 0 && needed.includes('/')) break;
    for (const each of changedPaths(step)) changed.add(each);
    const intent = progress.operation.intents.get(position) ?? null;
    const isConditional = step.resource.only_if !== undefined && intent === null;
    // The condition must be checked after all earlier changes.
    if (isConditional && hasWork) break;
    const observe = () => progress.observe(step, forecast);
    const ask = () => (isConditional ? conditionOf(step, forecast, progress) : satisfied);
    const planned = await planStep(step, observe, forecast, progress.view.desired, copies, ask);
    const { observation } = planned;
    const original = intent === null ? null : decide(step, { seen: intent.seen }, forecast, copies);
    const decision = leavesNoTrace(provider, step, intent, planned, original)
      ? (original as Decision)
      : planned.decision;
    // Skipped resources must be in the journal first, because their conditions may be true when the agent resumes after
    // it was killed.
    if (decision.verdict === 'act' && intent === null && hasUnmet) break;
    // An earlier resource in this run may provide the missing prerequisite, so this resource is observed again later.
    if (decision.verdict === 'fail' && run.length > 0 && decision.awaits && forecast.suppliersOf(step, decision.awaits))
      break;
    // The change was finished before the agent was killed. Later steps are planned with its effect, as on the first
    // attempt.
    if (original?.verdict === 'act' && decision.verdict === 'none') forecast.expects(step, original);
    // Drops the observations of resources that need no change, so that a thousand unchanged files are not held in
    // memory.
    if (decision.verdict === 'act' && observation !== null && 'seen' in observation) {
      bytes += provider.weight(observation.seen);
      for (const made of provider.makes?.(step.resource, observation.seen) ?? []) changed.add(made);
    }
    hasWork ||= decision.verdict === 'act';
    hasUnmet ||= isUnmet({ step, decision });
    run.push({
      step,
      provider,
      observation: decision.verdict === 'act' ? observation : null,
      decision,
      original: original?.verdict === 'act' ? original : null,
      before: intent?.before ?? null,
      former: intent?.former ?? null,
      known: intent !== null,
    });
    // Services that are triggered immediately are applied before the next resource.
    if (progress.triggeredImmediately(step).length > 0) break;
    await progress.yieldIfDue();
  }
  return run;
}

/** Reports whether the agent was killed during a change that cannot be observed and is therefore repeated. */
function leavesNoTrace(
  provider: Provider,
  { kind, resource }: Step,
  intent: Intent | null,
  { decision, observation }: { decision: Decision; observation: Observation | null },
  original: Decision | null,
): boolean {
  if (provider.wasApplied === undefined || intent === null || kind !== 'apply') return false;
  if (decision.verdict !== 'none' || original?.verdict !== 'act') return false;
  if (observation === null || !('seen' in observation)) return false;
  return !provider.wasApplied(resource, intent.seen, observation.seen, original.difference);
}

/** Reports whether a step with a condition is skipped. */
export const isUnmet = ({ step, decision }: { step: Step; decision: Decision }): boolean =>
  decision.verdict === 'skip' && step.resource.only_if !== undefined;

/**
 * Journals all intended changes of a run in one synced entry, together with the current state and everything needed to
 * restore it.
 */
async function recordIntents(progress: Progress, run: PlannedStep[]): Promise<void> {
  const entries: ({ position: number } & Intent)[] = [];
  const made = new Set<string>();
  const machine = progress.view.machine();
  for (const planned of run) {
    const { step, provider, decision, observation } = planned;
    if (decision.verdict !== 'act' || observation === null || !('seen' in observation)) continue;
    try {
      if (!planned.known && step.kind === 'apply') {
        const before = step.record?.before ?? null;
        planned.before = (await progress.originalIsLost(step, provider))
          ? null
          : await provider.remember(step.resource, observation.seen, decision.difference, before, machine);
        if (progress.isOnTrial(step))
          planned.former =
            provider.rememberForTrial?.(step.resource, observation.seen) ??
            (await provider.remember(step.resource, observation.seen, decision.difference, null, machine));
      }
      const path = provider.path(step.resource);
      if (path !== null) for (const directory of progress.view.missingAbove(path)) made.add(directory);
      if (!planned.known)
        entries.push({
          position: step.position,
          seen: provider.inBrief(observation.seen),
          before: planned.before,
          ...(planned.former === null ? {} : { former: planned.former }),
        });
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      // Fails the step, because a change without a saved original state could not be reverted.
      planned.decision = { verdict: 'fail', message: error.message };
    }
  }
  const unrecorded = [...made].filter((path) => !progress.context.journal.state.ourDirectories.has(path));
  if (entries.length === 0 && unrecorded.length === 0) return;
  progress.context.journal.copies.sync();
  if (progress.hasUnflushedSkip) await progress.flush('results');
  progress.context.journal.record('intents', [
    { t: 'directories', id: progress.id, made: unrecorded, gone: [] },
    { t: 'intents', id: progress.id, entries },
  ]);
  await progress.context.journal.sync();
  progress.context.crashPoint('intents:synced');
}

async function applyPlanned(progress: Progress, planned: PlannedStep, started: number): Promise<ResourceResult> {
  const { step, provider, decision, original } = planned;
  const { resource } = step;
  const elapsed = () => progress.now() - started;
  if (decision.verdict === 'none') {
    if (original !== null) {
      // The change was journaled before the agent was killed, and the resource is now as declared, so the agent made
      // the change.
      progress.recordBefore(resource.key, await completedRecord(progress, planned));
      return resultOf(step, noted(original, `applied before ${progress.interruption}`), 'changed', elapsed());
    }
    const fault = claimIfNew(progress, step, provider);
    if (fault !== null) return resultOf(step, fault, 'changed', elapsed());
  }
  if (decision.verdict !== 'act') return resultOf(step, decision, 'changed', elapsed());
  const seen = (planned.observation as { seen: unknown }).seen;
  try {
    const outcome = await provider.apply(resource, seen, decision.difference, progress.view.machine());
    progress.recordBefore(resource.key, await completedRecord(progress, planned));
    const reported = original === null ? decision : noted(original, `resumed after ${progress.interruption}`);
    return progress.ended(step, reported, outcome, elapsed());
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    await rememberPartial(progress, { ...planned, before: await completedRecord(progress, planned) }, seen);
    return failedResult(step, decision, error.message, elapsed());
  }
}

/**
 * Records an object that already belongs to the agent when its resource is first applied without a change.
 * @returns the failure if the agent cannot determine whether it owns the object
 */
export function claimIfNew(progress: Progress, step: Step, provider: Provider): Decision | null {
  if (step.record !== null) return null;
  try {
    progress.recordBefore(step.resource.key, provider.claim(step.resource, progress.view.machine()));
    return null;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return { verdict: 'fail', message: error.message };
  }
}

type Recorded = Pick<PlannedStep, 'step' | 'provider' | 'before'>;

/** Records the original state of a failed resource that may have changed, so that it can be restored. */
export async function rememberPartial(progress: Progress, planned: Recorded, seen: unknown): Promise<void> {
  const { step, provider } = planned;
  const stepsState = new StepsState('apply', new Map(), []);
  const now = await progress.observe(step, stepsState);
  if (!('seen' in now) || differs(provider, seen, now.seen)) progress.recordBefore(step.resource.key, planned.before);
}

/** Returns the record for removal after a change; the earlier record if the provider cannot complete it. */
export async function completedRecord(progress: Progress, { step, provider, before }: Recorded): Promise<Json | null> {
  if (before === null || provider.afterwards === undefined) return before;
  try {
    return await provider.afterwards(step.resource, before, progress.view.machine());
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    // The change is finished, and without the addition a removal only leaves more behind.
    const { key: resource } = step.resource;
    const fields = { operation_id: progress.id, resource, error: error.message };
    progress.context.warn(fields, 'failed to complete the record for removal');
    return before;
  }
}

/** Reports whether a resource differs from an earlier observation; true if that is unknown. */
function differs(provider: Provider, before: unknown, now: unknown): boolean {
  try {
    return JSON.stringify(provider.inBrief(before)) !== JSON.stringify(provider.inBrief(now));
  } catch (error) {
    if (error instanceof HostFailure) return true;
    throw error;
  }
}

async function removePlanned(
  progress: Progress,
  planned: PlannedStep,
  stepsState: StepsState,
  started: number,
): Promise<ResourceResult> {
  const { step, provider, original } = planned;
  const { resource, record } = step;
  const before = record?.before ?? null;
  // Observes again, because an earlier removal may have affected the resource.
  const observation = await progress.observe(step, stepsState);
  const decision = decide(step, observation, stepsState, progress.context.journal.copies);
  const elapsed = () => progress.now() - started;
  if (decision.verdict === 'none') {
    const { stillOurs } = decision.difference;
    if (stillOurs !== undefined) {
      progress.recordLate({ t: 'directories', id: null, made: [stillOurs], gone: [] });
      return resultOf(step, decision, 'changed', elapsed());
    }
    // Another process may have removed the object. Either way, the parent directories created for it are no longer
    // needed.
    pruneAbove(progress, resource, provider);
    if (original === null) return resultOf(step, decision, 'changed', elapsed());
    forgetBelow(progress, resource, provider);
    return resultOf(step, noted(original, `applied before ${progress.interruption}`), 'changed', elapsed());
  }
  if (decision.verdict !== 'act' || !('seen' in observation)) return resultOf(step, decision, 'changed', elapsed());
  try {
    const outcome = await provider.remove(
      resource,
      before,
      observation.seen,
      decision.difference,
      progress.view.machine(),
    );
    forgetBelow(progress, resource, provider);
    pruneAbove(progress, resource, provider);
    return progress.ended(step, decision, outcome, elapsed());
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return failedResult(step, decision, error.message, elapsed());
  }
}

/** Removes from the record the created parent directories below a removed directory. */
function forgetBelow(progress: Progress, resource: Step['resource'], provider: Provider): void {
  const path = provider.path(resource);
  if (path === null) return;
  const { ourDirectories } = progress.context.journal.state;
  const below = [...ourDirectories].filter((directory) => directory.startsWith(`${path}/`));
  if (below.length > 0) progress.recordLate({ t: 'directories', id: null, made: [], gone: below });
}

/** Removes the parent directories that were created only for this object. */
function pruneAbove(progress: Progress, resource: Step['resource'], provider: Provider): void {
  const path = provider.path(resource);
  if (path === null) return;
  const { ourDirectories } = progress.context.journal.state;
  const machine = progress.view.machine();
  for (const directory of ancestors(path)) {
    if (!ourDirectories.has(directory)) return;
    // Another resource declares the directory, and therefore manages it.
    if (machine.declaredDirectory(directory)) return;
    if (!isRemoved(directory, progress)) return;
    progress.recordLate({ t: 'directories', id: null, made: [], gone: [directory] });
  }
}

/**
 * Removes an empty directory, and reports whether that succeeded. Keeps one that cannot be reached or removed, because it
 * does no harm.
 */
function isRemoved(directory: string, progress: Progress): boolean {
  try {
    return removeEmptyDirectory(directory, progress.view.machine());
  } catch (error) {
    if (error instanceof HostFailure) return false;
    throw error;
  }
}
