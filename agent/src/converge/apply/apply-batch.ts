import type { ResourceResult } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import type { Item, Json, Outcome, Provider } from '../../resources/provider/provider.ts';
import { providerFor } from '../plan/find-provider.ts';
import { type Decision, decide, type Picture, planStep, type Step } from '../plan/plan.ts';
import { type Progress, Stopped } from '../progress.ts';
import { noted, resultOf } from '../result.ts';
import { awaitLeftover } from './apply-one.ts';
import { claimIfNew, rememberPartial } from './apply-package-group.ts';

/**
 * Neighbours of one kind that are carried out in one go, such as packages in one transaction. All of them are looked at
 * and put on record in one synced line; when the agent is killed in the middle, what it had started is waited for, and
 * what got done is found by looking again.
 */

/** How many are carried out in one go. */
const maxTogether = 512;

type Together = Provider & Required<Pick<Provider, 'together'>>;
export const isTogether = (provider: Provider): provider is Together => provider.together !== undefined;
type Act = Extract<Decision, { verdict: 'none' | 'act' }>;

interface Planned {
  step: Step;
  provider: Together;
  /** Null when it could not be looked at, or need not be. */
  seen: { it: unknown } | null;
  decision: Decision;
  before: Json | null;
  /** Its intent is in the journal already. */
  known: boolean;
  /** What was to be done before the agent was killed; null at the first attempt, or when nothing was. */
  original: Act | null;
  /** That was done before the agent was killed. */
  isDone: boolean;
}

export async function applyTogether(
  progress: Progress,
  steps: readonly Step[],
  picture: Picture,
  provider: Together,
): Promise<void> {
  const started = progress.now();
  const first = progress.results.length;
  if (progress.operation.intents.has(first) || progress.operation.step?.position === first)
    await recover(progress, provider);
  const batch = await foresee(progress, steps, picture, provider);
  await recordIntents(progress, batch);
  const due = batch.filter(({ decision, seen, isDone }) => decision.verdict === 'act' && seen !== null && !isDone);
  const outcomes = due.length === 0 ? [] : await carryOut(progress, provider, due);
  const each = (progress.now() - started) / batch.length;
  for (const planned of batch) {
    const outcome = outcomes[due.indexOf(planned)] ?? null;
    const result = await resultFor(progress, planned, outcome, each);
    picture.ended(planned.step, result.status);
    progress.add(planned.step, result);
  }
  if (due.length === 0) return progress.breathe();
  progress.context.crashPoint('batch:ended');
  await progress.flush('results');
}

/** What a killed agent had started has come to its end, and the machine is fit to be looked at. */
async function recover(progress: Progress, provider: Together): Promise<void> {
  await awaitLeftover(progress, progress.operation.step?.process ?? null, 'packageMs');
  try {
    await provider.recover?.(progress.machine());
  } catch (error) {
    // Each resource will say for itself what is wrong with it.
    if (!(error instanceof HostFailure)) throw error;
    progress.context.warn({ operation_id: progress.id, error: error.message }, 'what was interrupted is not mended');
  }
  progress.stale();
}

/** Looks at the neighbours, as far as none needs another, and decides about each. */
async function foresee(
  progress: Progress,
  steps: readonly Step[],
  picture: Picture,
  provider: Together,
): Promise<Planned[]> {
  const { copies } = progress.context.journal;
  const forecast = picture.forecast();
  const batch: Planned[] = [];
  const taken = new Set<string>();
  const first = progress.results.length;
  for (const step of steps.slice(first, first + maxTogether)) {
    const { resource } = step;
    if (step.kind !== steps[first]?.kind || providerFor(step) !== provider) break;
    const needs = [...resource.depends_on, ...resource.reload_on, ...resource.restart_on, ...resource.rerun_on];
    if (needs.some((key) => taken.has(key))) break;
    taken.add(resource.key);
    const observe = () => progress.observe(step, forecast);
    const { decision, observation } = await planStep(step, observe, forecast, progress.desired, copies);
    const seen = observation !== null && 'seen' in observation ? { it: observation.seen } : null;
    const intent = progress.operation.intents.get(step.position) ?? null;
    const intended = intent === null ? null : decide(step, { seen: intent.seen }, forecast, copies);
    const original = intended?.verdict === 'act' ? intended : null;
    const isDone =
      intent !== null &&
      original !== null &&
      seen !== null &&
      gotDone(provider, step, decision, intent.seen, seen.it, original);
    // What leaves no trace but was not done, such as a restart, is done now.
    const due = original !== null && seen !== null && !isDone && decision.verdict === 'none' ? original : decision;
    const before = intent?.before ?? step.record?.before ?? null;
    batch.push({ step, provider, seen, decision: due, before, known: intent !== null, original, isDone });
    await progress.breathe();
  }
  return batch;
}

/** Whether what was to be done had been done when the agent was killed. */
function gotDone(
  provider: Together,
  { kind, resource }: Step,
  now: Decision,
  brief: Json,
  seen: unknown,
  original: Act,
): boolean {
  if (now.verdict !== 'none' && now.verdict !== 'act') return false;
  // What is to be removed and is still there has not been removed, whatever was done to it.
  if (kind === 'remove' && now.verdict === 'act') return false;
  if (provider.gotDone === undefined) return now.verdict === 'none';
  return provider.gotDone(resource, brief, seen, original.difference);
}

/** One synced line for all that is going to change: what is there now, and what of it must come back one day. */
async function recordIntents(progress: Progress, batch: readonly Planned[]): Promise<void> {
  const entries: { position: number; seen: Json; before: Json | null }[] = [];
  const machine = progress.machine();
  for (const planned of batch) {
    const { step, provider, decision, seen } = planned;
    if (decision.verdict !== 'act' || seen === null || planned.known) continue;
    try {
      if (step.kind === 'apply')
        planned.before = (await progress.originalIsLost(step, provider))
          ? null
          : await provider.remember(step.resource, seen.it, decision.difference, planned.before, machine);
      entries.push({ position: step.position, seen: provider.inBrief(seen.it), before: planned.before });
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      // Nothing may be changed that could not be brought back.
      planned.decision = { verdict: 'fail', message: error.message };
    }
  }
  if (entries.length === 0) return;
  progress.context.journal.copies.sync();
  // What came before is told first.
  await progress.flush('together', [{ t: 'intents', id: progress.id, entries }]);
  progress.context.crashPoint('batch:synced');
}

/** @returns an outcome for each, in order */
async function carryOut(progress: Progress, provider: Together, due: readonly Planned[]): Promise<Outcome[]> {
  const { running, stopping } = progress.context;
  const position = progress.results.length;
  const machine = progress.machine((process, fate) => {
    // A package transaction is left running when the agent stops.
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
  progress.walk.forget();
  try {
    const outcomes = await provider.together(items, machine);
    // It was left or cut off so that the agent can stop: the next start finds out what got done.
    if (stopping() && outcomes.some(({ failure }) => failure !== undefined)) throw new Stopped();
    return outcomes;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    if (stopping()) throw new Stopped();
    return due.map(() => ({ failure: error.message }));
  } finally {
    running(null);
    progress.stale();
  }
}

async function resultFor(
  progress: Progress,
  planned: Planned,
  outcome: Outcome | null,
  ms: number,
): Promise<ResourceResult> {
  const { step, provider, seen, original, before, isDone, decision } = planned;
  const { resource, kind } = step;
  const record = (now: Json | null) => {
    if (kind === 'apply') progress.recordBefore(resource.key, now);
  };
  if (isDone && original !== null) {
    const later = kind === 'apply' && before !== null ? provider.afterwards : undefined;
    record(later === undefined || before === null ? before : await later(resource, before, progress.machine()));
    return resultOf(step, noted(original, `carried out before ${progress.interruption}`), 'changed', ms);
  }
  if (outcome === null) {
    const claims = decision.verdict === 'none' && kind === 'apply';
    const fault = claims ? claimIfNew(progress, step, provider) : null;
    return resultOf(step, fault ?? decision, 'changed', ms);
  }
  if (outcome.failure === undefined) record(before === null ? null : (outcome.before ?? before));
  // After a failure: what was changed of it, if anything, must still come back one day.
  else if (kind === 'apply' && seen !== null)
    await rememberPartial(progress, { step, provider, before: outcome.before ?? before }, seen.it);
  const told = original === null ? decision : noted(original, `carried on after ${progress.interruption}`);
  return progress.ended(step, told, outcome, ms);
}
