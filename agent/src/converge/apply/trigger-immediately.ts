import type { ResourceResult } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import type { Json } from '../../resources/provider/provider.ts';
import { Stopped } from '../execution-context.ts';
import { conditionOf } from '../plan/condition.ts';
import type { Decision } from '../plan/decision.ts';
import { providerFor } from '../plan/find-provider.ts';
import { decide } from '../plan/plan.ts';
import { labelOf, type Step } from '../plan/steps.ts';
import type { StepsState } from '../plan/steps-state.ts';
import { isConfirmed, type Progress } from '../progress.ts';

/**
 * Applies services right after a resource that triggers them immediately, before any later resource. Each service also
 * has its own step, which applies it again if another trigger is due.
 */

/**
 * Adds the result of a step, after applying the services that it triggers immediately.
 * @param former state before this operation, which is restored if a confirmed service fails after the change
 */
export async function endStep(
  progress: Progress,
  step: Step,
  result: ResourceResult,
  stepsState: StepsState,
  former: Json | null = null,
): Promise<void> {
  stepsState.ended(step, result.status);
  const failure = await triggerImmediately(progress, step, result, stepsState, former);
  if (failure === null) return progress.add(step, result);
  stepsState.ended(step, 'failed');
  progress.add(step, { ...result, status: 'failed', message: failure });
}

/** @returns why a service could not be triggered; null if all were triggered */
async function triggerImmediately(
  progress: Progress,
  step: Step,
  { status }: ResourceResult,
  stepsState: StepsState,
  former: Json | null,
): Promise<string | null> {
  const tried: Step[] = [];
  for (const service of progress.triggeredImmediately(step)) {
    // A trigger that remains due from an earlier operation fires at the same point in this one.
    if (status !== 'changed' && !(status === 'unchanged' && stepsState.isPending(service, step))) continue;
    const failure = await apply(progress, service, stepsState, step);
    tried.push(service);
    if (failure === null) continue;
    const follows = `\`${labelOf(service.resource)}\` could not follow: ${failure}`;
    if (former === null || !isConfirmed(service)) return `it is in place, but ${follows}`;
    return `${follows}\n${await undo(progress, step, former, tried, stepsState)}`;
  }
  return null;
}

/**
 * Restores a resource, and applies its services again.
 * @returns a note for the result
 */
async function undo(
  progress: Progress,
  step: Step,
  former: Json,
  services: readonly Step[],
  stepsState: StepsState,
): Promise<string> {
  const provider = providerFor(step);
  if (provider === null) throw new Error(`${step.resource.key} changed without a provider`);
  const { resource } = step;
  const machine = progress.view.machine();
  progress.context.crashPoint('undo:before');
  progress.view.walk.forget();
  try {
    const seen = await provider.observeForRemoval(resource, former, machine);
    const { copies } = progress.context.journal;
    const difference = provider.diffRemoval(resource, former, seen, stepsState.circumstances(step), copies);
    if (difference.action !== 'none') await provider.remove(resource, former, seen, difference, machine);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return `It is still in place, because its former state could not be restored: ${error.message}`;
  } finally {
    progress.view.stale();
  }
  progress.context.crashPoint('undo:restored');
  // A service without an intent has not been applied, because it was too early or there was nothing to do.
  const followers = services.filter(({ position }) => progress.operation.intents.has(position));
  const failures: string[] = [];
  for (const service of followers) {
    const failure = await apply(progress, service, stepsState, null);
    if (failure !== null) failures.push(`\`${labelOf(service.resource)}\`: ${failure}`);
  }
  const restored = 'Its former state is restored';
  if (failures.length > 0) return `${restored}, but a service does not work with that either: ${failures.join('; ')}`;
  if (followers.length === 0) return `${restored}.`;
  return `${restored}, and ${followers.map(({ resource }) => `\`${labelOf(resource)}\``).join(', ')} followed.`;
}

/**
 * Applies a service before its own step.
 * @param trigger the step that triggers it; null after that step's resource was restored
 * @returns the failure; null if applying succeeded or there is nothing to do
 */
async function apply(
  progress: Progress,
  service: Step,
  stepsState: StepsState,
  trigger: Step | null,
): Promise<string | null> {
  const { journal, running, stopping } = progress.context;
  const provider = providerFor(service);
  if (provider?.together === undefined || stepsState.obstacle(service, progress.view.desired) !== null) return null;
  if ('verdict' in (await conditionOf(service, stepsState, progress))) return null;
  const observation = await progress.observe(service, stepsState);
  const decision = decide(service, observation, stepsState, journal.copies);
  // The service's own step reports why the service cannot be applied.
  if (decision.verdict !== 'act' || !('seen' in observation)) return null;
  const { resource, position } = service;
  const { seen } = observation;
  const { difference } = decision;
  const hasBegun = progress.operation.intents.has(position);
  // A stopped service may be unable to start before the later files are applied, and the automatic restore protects
  // only a running service. If the agent was killed during such an attempt, the service may be down because of this
  // trigger.
  const isTooEarly = trigger !== null && !hasBegun && isConfirmed(service) && !progress.isLastTrigger(trigger, service);
  if (isTooEarly && provider.runs?.(seen) === false) return null;
  const machine = progress.view.machine((process, fate) => {
    if (fate !== 'left') running(process);
  });
  try {
    let before = service.record?.before ?? null;
    if (!hasBegun) {
      before = (await progress.originalIsLost(service, provider))
        ? null
        : await provider.remember(resource, seen, difference, before, machine);
      journal.copies.sync();
      const entry = { position, seen: provider.inBrief(seen), before, isEarly: true };
      await progress.flush('immediately', [{ t: 'intents', id: progress.id, entries: [entry] }]);
    }
    progress.context.crashPoint('immediately:synced');
    progress.view.walk.forget();
    const [outcome = {}] = await provider.together([{ kind: 'apply', resource, seen, difference, before }], machine);
    if (stopping() && outcome.failure !== undefined) throw new Stopped();
    // The operation may end before the service's own step. In that case, the step must stay restorable.
    progress.recordBefore(resource.key, before);
    if (outcome.failure !== undefined) return outcome.failure;
    stepsState.triggeredEarly(service, decision);
    progress.context.crashPoint('immediately:done');
    return null;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    if (stopping()) throw new Stopped();
    return error.message;
  } finally {
    running(null);
    progress.view.stale();
  }
}

/**
 * Returns the result of an early execution of this step if the step's own execution would only repeat it, because every
 * due trigger was handled.
 */
export function servedEarly(
  step: Step,
  decision: Decision,
  stepsState: StepsState,
): Extract<Decision, { verdict: 'act' | 'none' }> | null {
  const early = stepsState.earlyDecision(step);
  if (early === null || decision.verdict === 'skip' || decision.verdict === 'fail') return null;
  const repeats =
    decision.verdict === 'none' ||
    (decision.difference.changes.length === 0 &&
      decision.triggeredBy.every((label) => early.triggeredBy.includes(label)));
  if (!repeats) return null;
  const [source] = early.triggeredBy;
  const message = `applied immediately after \`${source}\` changed`;
  return { ...early, difference: { ...early.difference, message } };
}
