import type { ResourceResult } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import { removeEmptyDirectory } from '../../resources/directory-unix.ts';
import type { Json, Provider } from '../../resources/provider/provider.ts';
import { providerFor } from '../plan/find-provider.ts';
import { ancestors, type Decision, decide, type Observation, Picture, planStep, type Step } from '../plan/plan.ts';
import { type Progress, patienceMs } from '../progress.ts';
import { failedResult, noted, resultOf } from '../result.ts';

/**
 * A run of resources that can be re-checked: all of it is looked at, put on record in one synced line, then carried
 * out. What a killed agent had done of it is found by looking again.
 */

/** Bytes of file contents that a run may hold in memory. */
const runBytes = 16 * 1024 * 1024;
const maxRun = 1024;
/** Files that wait for the disk at the same time. */
const maxInFlight = 32;

interface PlannedStep {
  step: Step;
  provider: Provider;
  /** Null when nothing is to be done. */
  observation: Observation | null;
  decision: Decision;
  /** What was to be done before the agent was killed; null when this is the first attempt, or nothing was. */
  original: Decision | null;
  before: Json | null;
  /** Its intent is in the journal already. */
  known: boolean;
}

export async function applyRun(progress: Progress, steps: readonly Step[], picture: Picture): Promise<void> {
  const run = await foresee(progress, steps, picture);
  await recordIntents(progress, run);
  // Files wait for the disk together, as far as none needs another; they are told in order all the same.
  let inFlight: { planned: PlannedStep; result: Promise<ResourceResult> }[] = [];
  const land = async (): Promise<void> => {
    const landing = inFlight;
    inFlight = [];
    // All of them have ended before the first that failed is looked at: none goes on behind a closed walk.
    await Promise.allSettled(landing.map(({ result }) => result));
    for (const { planned, result } of landing) {
      picture.ended(planned.step, (await result).status);
      progress.add(planned.step, await result);
    }
    progress.context.crashPoint('resource:after');
    if (progress.now() - progress.flushedAt > patienceMs) await progress.flush('results');
    else await progress.breathe();
  };
  const needs = ({ resource }: Step): boolean =>
    inFlight.some(({ planned }) => resource.depends_on.includes(planned.step.resource.key));
  try {
    for (const planned of run) {
      const { step } = planned;
      const alone = step.kind === 'remove' || step.resource.type !== 'file-unix';
      const ending = progress.context.stopping() || progress.operation.cancelled;
      if (inFlight.length >= maxInFlight || (inFlight.length > 0 && (alone || ending || needs(step)))) await land();
      if (progress.interrupted()) break;
      progress.context.crashPoint('resource:before');
      inFlight.push({ planned, result: attempt(progress, planned, picture) });
      if (alone) await land();
    }
    await land();
  } catch (error) {
    // Nor behind a fault: the next attempt would meet it on the same files.
    await Promise.allSettled(inFlight.map(({ result }) => result));
    throw error;
  }
  progress.walk.forget();
}

async function attempt(progress: Progress, planned: PlannedStep, picture: Picture): Promise<ResourceResult> {
  const { step } = planned;
  const started = progress.now();
  const obstacle = picture.obstacle(step, progress.desired);
  if (obstacle !== null) return resultOf(step, { verdict: 'skip', message: obstacle }, 'changed', 0);
  return step.kind === 'apply'
    ? carryOut(progress, planned, started)
    : carryOutRemoval(progress, planned, picture, started);
}

/** Looks at the resources of a run and decides about each as if all before it succeeded. */
async function foresee(progress: Progress, steps: readonly Step[], picture: Picture): Promise<PlannedStep[]> {
  const { copies } = progress.context.journal;
  const run: PlannedStep[] = [];
  const forecast = picture.forecast();
  progress.results.forEach(({ action, status }, i) => {
    const step = steps[i] as Step;
    if (step.kind === 'remove' && action === 'remove' && status === 'changed') forecast.removed(step);
  });
  /** Paths at and below which is looked at again once what comes before has been carried out. */
  const changed = new Set<string>();
  let bytes = 0;
  for (let position = progress.results.length; position < steps.length && run.length < maxRun; position++) {
    const step = steps[position] as Step;
    const provider = providerFor(step);
    if (provider?.recheckable !== true || provider.together !== undefined || bytes > runBytes) break;
    // What is below something that may become a link, in the same file, or made by another resource, can only be looked
    // at once that is done.
    const path = provider.path(step.resource);
    if (path !== null && changed.size > 0 && [path, ...ancestors(path)].some((way) => changed.has(way))) break;
    if (path !== null && step.resource.type !== 'directory-unix') changed.add(path);
    const observe = () => progress.observe(step, forecast);
    const { decision, observation } = await planStep(step, observe, forecast, progress.desired, copies);
    // An earlier one of this run may bring what it misses: it is looked at again after that.
    if (decision.verdict === 'fail' && run.length > 0 && decision.awaits && forecast.bringersOf(step, decision.awaits))
      break;
    const intent = progress.operation.intents.get(position) ?? null;
    const original = intent === null ? null : decide(step, { seen: intent.seen }, forecast, copies);
    // It was done before the agent was killed: what comes after it was looked at for the first time as if it had not been.
    if (original?.verdict === 'act' && decision.verdict === 'none') forecast.expects(step, original);
    // What needs nothing is not kept: a thousand unchanged files must not be held in memory.
    if (decision.verdict === 'act' && observation !== null && 'seen' in observation) {
      bytes += provider.weight(observation.seen);
      for (const made of provider.makes?.(step.resource, observation.seen) ?? []) changed.add(made);
    }
    run.push({
      step,
      provider,
      observation: decision.verdict === 'act' ? observation : null,
      decision,
      original: original?.verdict === 'act' ? original : null,
      before: intent?.before ?? null,
      known: intent !== null,
    });
    await progress.breathe();
  }
  return run;
}

/** One synced line for all of a run that is going to change: what is there now, and what of it must come back. */
async function recordIntents(progress: Progress, run: PlannedStep[]): Promise<void> {
  const entries: { position: number; seen: Json; before: Json | null }[] = [];
  const made = new Set<string>();
  const machine = progress.machine();
  for (const planned of run) {
    const { step, provider, decision, observation } = planned;
    if (decision.verdict !== 'act' || observation === null || !('seen' in observation)) continue;
    try {
      if (!planned.known && step.kind === 'apply') {
        const before = step.record?.before ?? null;
        planned.before = (await progress.originalIsLost(step, provider))
          ? null
          : await provider.remember(step.resource, observation.seen, decision.difference, before, machine);
      }
      const path = provider.path(step.resource);
      if (path !== null) for (const directory of progress.missingAbove(path)) made.add(directory);
      if (!planned.known)
        entries.push({ position: step.position, seen: provider.inBrief(observation.seen), before: planned.before });
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      // Nothing may be changed that could not be brought back.
      planned.decision = { verdict: 'fail', message: error.message };
    }
  }
  const unrecorded = [...made].filter((path) => !progress.context.journal.state.ourDirectories.has(path));
  if (entries.length === 0 && unrecorded.length === 0) return;
  progress.context.journal.copies.sync();
  progress.context.journal.record('intents', [
    { t: 'directories', id: progress.id, made: unrecorded, gone: [] },
    { t: 'intents', id: progress.id, entries },
  ]);
  await progress.context.journal.sync();
  progress.context.crashPoint('intents:synced');
}

async function carryOut(progress: Progress, planned: PlannedStep, started: number): Promise<ResourceResult> {
  const { step, provider, decision, original } = planned;
  const { resource } = step;
  const elapsed = () => progress.now() - started;
  if (decision.verdict === 'none') {
    if (original !== null) {
      // It was about to be changed when the agent was killed, and is as declared now: that was us.
      progress.recordBefore(resource.key, planned.before);
      return resultOf(step, noted(original, `carried out before ${progress.interruption}`), 'changed', elapsed());
    }
    const fault = claimIfNew(progress, step, provider);
    if (fault !== null) return resultOf(step, fault, 'changed', elapsed());
  }
  if (decision.verdict !== 'act') return resultOf(step, decision, 'changed', elapsed());
  const seen = (planned.observation as { seen: unknown }).seen;
  try {
    const outcome = await provider.apply(resource, seen, decision.difference, progress.machine());
    progress.recordBefore(resource.key, planned.before);
    const told = original === null ? decision : noted(original, `carried on after ${progress.interruption}`);
    return progress.ended(step, told, outcome, elapsed());
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    await rememberPartial(progress, planned, seen);
    return failedResult(step, decision, error.message, elapsed());
  }
}

/**
 * Puts on record what is ours already, at the first apply of it.
 * @returns why that cannot be told
 */
export function claimIfNew(progress: Progress, step: Step, provider: Provider): Decision | null {
  if (step.record !== null) return null;
  try {
    progress.recordBefore(step.resource.key, provider.claim(step.resource, progress.machine()));
    return null;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return { verdict: 'fail', message: error.message };
  }
}

/** After a failure: what was changed of it, if anything or if that cannot be told, must still come back one day. */
export async function rememberPartial(
  progress: Progress,
  planned: Pick<PlannedStep, 'step' | 'provider' | 'before'>,
  seen: unknown,
): Promise<void> {
  const { step, provider } = planned;
  const picture = new Picture('apply', new Map(), []);
  const now = await progress.observe(step, picture);
  if (!('seen' in now) || looksOther(provider, seen, now.seen))
    progress.recordBefore(step.resource.key, planned.before);
}

/** Whether a resource looks other than before; when that cannot be told, it does. */
function looksOther(provider: Provider, before: unknown, now: unknown): boolean {
  try {
    return JSON.stringify(provider.inBrief(before)) !== JSON.stringify(provider.inBrief(now));
  } catch (error) {
    if (error instanceof HostFailure) return true;
    throw error;
  }
}

async function carryOutRemoval(
  progress: Progress,
  planned: PlannedStep,
  picture: Picture,
  started: number,
): Promise<ResourceResult> {
  const { step, provider, original } = planned;
  const { resource, record } = step;
  const before = record?.before ?? null;
  // Again, because what was removed before this one may have been in it.
  const observation = await progress.observe(step, picture);
  const decision = decide(step, observation, picture, progress.context.journal.copies);
  const elapsed = () => progress.now() - started;
  if (decision.verdict === 'none') {
    const { stillOurs } = decision.difference;
    if (stillOurs !== undefined) {
      progress.recordLate({ t: 'directories', id: null, made: [stillOurs], gone: [] });
      return resultOf(step, decision, 'changed', elapsed());
    }
    // Somebody else may have removed it, or an apply that declared it absent: the way to it is as needless.
    pruneAbove(progress, resource, provider);
    if (original === null) return resultOf(step, decision, 'changed', elapsed());
    forgetBelow(progress, resource, provider);
    return resultOf(step, noted(original, `carried out before ${progress.interruption}`), 'changed', elapsed());
  }
  if (decision.verdict !== 'act' || !('seen' in observation)) return resultOf(step, decision, 'changed', elapsed());
  try {
    const outcome = await provider.remove(resource, before, observation.seen, decision.difference, progress.machine());
    forgetBelow(progress, resource, provider);
    pruneAbove(progress, resource, provider);
    return progress.ended(step, decision, outcome, elapsed());
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return failedResult(step, decision, error.message, elapsed());
  }
}

/** What was made on the way in a directory went with it. */
function forgetBelow(progress: Progress, resource: Step['resource'], provider: Provider): void {
  const path = provider.path(resource);
  if (path === null) return;
  const { ourDirectories } = progress.context.journal.state;
  const below = [...ourDirectories].filter((directory) => directory.startsWith(`${path}/`));
  if (below.length > 0) progress.recordLate({ t: 'directories', id: null, made: [], gone: below });
}

/** Removes the directories above that were only made for what is gone now. */
function pruneAbove(progress: Progress, resource: Step['resource'], provider: Provider): void {
  const path = provider.path(resource);
  if (path === null) return;
  const { ourDirectories } = progress.context.journal.state;
  const machine = progress.machine();
  for (const directory of ancestors(path)) {
    if (!ourDirectories.has(directory)) return;
    // Its own resource answers for it from now on.
    if (machine.declaredDirectory(directory)) return;
    if (!isRemoved(directory, progress)) return;
    progress.recordLate({ t: 'directories', id: null, made: [], gone: [directory] });
  }
}

/** One that cannot be reached or removed is left: it is in nobody's way. */
function isRemoved(directory: string, progress: Progress): boolean {
  try {
    return removeEmptyDirectory(directory, progress.machine());
  } catch (error) {
    if (error instanceof HostFailure) return false;
    throw error;
  }
}
