import { appliedResources, differenceFingerprint, driftOf } from './observe.ts';
import type { Step } from './plan/steps.ts';
import { StepsState } from './plan/steps-state.ts';
import type { Progress } from './progress.ts';
import { resultOf } from './result.ts';

/** Executes a drift check. It only observes and decides, so it starts over after a crash. */
export async function measureDrift(progress: Progress): Promise<void> {
  const { snapshot } = progress.context.journal.state;
  progress.begin([]);
  const requestedId = progress.operation.message.snapshot_operation_id;
  if (snapshot === null || (requestedId !== null && requestedId !== snapshot.operationId)) {
    const has = snapshot === null ? 'none' : `the snapshot of ${snapshot.operationId}`;
    return progress.finish(
      0,
      `the drift check expects the snapshot of apply ${requestedId ?? ''}, but this agent has ${has}; apply again`,
    );
  }
  const { managed } = progress.context.journal.state;
  const stepsState = new StepsState('drift', new Map(), []);
  const steps = appliedResources(progress.context.journal.state).map((resource, position): Step => {
    return { position, kind: 'apply', resource, record: managed.get(resource.key) ?? null };
  });
  progress.setSteps(steps);
  const fingerprints = new Map<string, string>();
  for (const step of steps) {
    if (progress.interrupted()) break;
    const started = progress.now();
    const decision = await driftOf(step, progress, stepsState);
    fingerprints.set(step.resource.key, differenceFingerprint(decision));
    const result = resultOf(step, decision, 'would_change', progress.now() - started);
    if (decision.verdict === 'none' || decision.verdict === 'skip') progress.results.push(result);
    else progress.add({ ...step, position: progress.reported }, result);
    await progress.yieldIfDue();
  }
  await progress.finish(steps.length);
  if (fingerprints.size === steps.length) progress.context.measured(fingerprints);
}
