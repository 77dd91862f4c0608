import { isDeepStrictEqual } from 'node:util';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { type ContentCopies, type Difference, nothing, presenceDrift } from '../../resources/provider/provider.ts';
import type { Condition, Decision, Observation } from './decision.ts';
import { providerFor, whyNoProvider } from './find-provider.ts';
import type { Step } from './steps.ts';
import { type StepsState, triggersOf } from './steps-state.ts';

/** Decides what each step must do. Does not access the machine; callers pass in the observations. */

/**
 * Decides what one step must do.
 * @param observation what the provider observed, or why it could not observe the resource
 * @param copies copies of file contents, to show what a removal restores
 */
export function decide(
  step: Step,
  observation: Observation,
  stepsState: StepsState,
  copies: Pick<ContentCopies, 'read'>,
): Decision {
  if ('failure' in observation) return { verdict: 'fail', message: observation.failure };
  const { resource, record } = step;
  const provider = providerFor(step);
  if (provider === null) return { verdict: 'fail', message: whyNoProvider(resource) };
  // The record has the format of the earlier type, so the resource must first be restored with that type.
  if (step.kind === 'apply' && record?.before != null && record.resource.type !== resource.type)
    return {
      verdict: 'fail',
      message: `it is managed as ${record.resource.type} here; apply once without it, then declare it as ${resource.type}`,
    };
  const circumstances = stepsState.circumstances(step);
  let difference: Difference;
  const before = record?.before ?? null;
  try {
    if (step.kind === 'apply') difference = provider.diff(resource, observation.seen, circumstances);
    else if (before === null)
      difference = nothing('left unchanged: it was already as declared before Muster managed it');
    else difference = provider.diffRemoval(resource, before, observation.seen, circumstances, copies);
  } catch (error) {
    if (error instanceof HostFailure) return { verdict: 'fail', message: error.message };
    throw error;
  }
  const path = provider.path(resource);
  const blocker = step.kind === 'apply' && path !== null ? stepsState.blockerOf(path) : null;
  if (blocker !== null) return { verdict: 'fail', message: blocker };
  const triggeredBy = triggersOf(circumstances);
  if (difference.action === 'none') {
    // A package may create the path during the apply. An apply must not do more than its plan, so the plan includes the
    // removal.
    if (stepsState.purpose === 'plan' && stepsState.mayBeUnpacked(step))
      return { verdict: 'act', difference: unpackedRemoval, triggeredBy, corrective: false };
    return { verdict: 'none', difference, triggeredBy: [], corrective: false };
  }
  const { awaits, waits } = difference;
  if (waits !== undefined) return { verdict: 'skip', message: `skipped, because ${waits}` };
  if (awaits !== undefined) {
    const message = missingPrerequisites(resource, awaits);
    // The prerequisite existed when the resource was applied, so its absence is drift.
    if (stepsState.purpose === 'drift') difference = { ...difference, message };
    // Another resource may provide the prerequisite. A plan cannot determine whether that resource will do so, and an
    // apply observes again later.
    else {
      const suppliers = stepsState.purpose === 'plan' ? stepsState.suppliersOf(step, awaits) : null;
      if (suppliers === null) return { verdict: 'fail', message, awaits };
      difference = { ...difference, message: availabilityNote(suppliers, message, difference.message) };
    }
  }
  return {
    verdict: 'act',
    difference,
    triggeredBy,
    corrective:
      step.kind === 'apply' &&
      triggeredBy.length === 0 &&
      isCorrective(step, () => provider.diff(resource, observation.seen, { ...circumstances, purpose: 'drift' })),
  };
}

const unpackedRemoval: Difference = {
  ...presenceDrift(),
  message: 'already absent; will be removed if a package that it depends on adds it',
};

/** Describes the missing prerequisites without secret names. */
const missingPrerequisites = (
  { sensitive_fields }: ResolvedResource,
  awaits: NonNullable<Difference['awaits']>,
): string =>
  sensitive_fields.includes('owner') || sensitive_fields.includes('group')
    ? 'its owner or its group, which is sensitive and not shown, does not exist'
    : awaits.map(({ message }) => message).join('; ');

/**
 * Returns the note for a plan. Only the apply can determine whether the prerequisite appears, and it fails if the
 * prerequisite is missing.
 */
function availabilityNote(suppliers: readonly string[], missing: string, message: string | undefined): string {
  const [what] = missing.split(';');
  const named = suppliers.slice(0, 3).map((label) => `\`${label}\``);
  const more = suppliers.length > named.length ? ` and ${suppliers.length - named.length} more` : '';
  const available = `will be available after ${named.join(', ')}${more}; now ${what}`;
  return [available, ...(message === undefined ? [] : [message])].join('\n');
}

/**
 * Reports whether a change repairs drift. This is the case if the declaration already succeeded on this machine, no
 * other declaration was tried since, and a drift check detects the difference. For example, a newer version of a
 * package is not drift.
 */
function isCorrective({ resource, record }: Step, asDrift: () => Difference): boolean {
  const succeeded = record?.succeeded ?? null;
  if (record === null || succeeded === null || succeeded.type !== resource.type) return false;
  const isSame = ({ body, source }: ResolvedResource) =>
    isDeepStrictEqual([body, source], [resource.body, resource.source]);
  if (!isSame(succeeded) || !isSame(record.resource)) return false;
  try {
    const { action, changes } = asDrift();
    return action !== 'none' && changes.length > 0;
  } catch (error) {
    if (error instanceof HostFailure) return true;
    throw error;
  }
}

/**
 * Decides what the next step of a plan does, and records the expected effect.
 * @param observe called only if the step is not skipped
 * @param ask checks the condition of the step; called only if no dependency failed
 */
export async function planStep(
  step: Step,
  observe: () => Observation | Promise<Observation>,
  stepsState: StepsState,
  desired: ReadonlyMap<string, ResolvedResource>,
  copies: Pick<ContentCopies, 'read'>,
  ask: () => Condition | Promise<Condition>,
): Promise<{ decision: Decision; observation: Observation | null }> {
  const obstacle = stepsState.obstacle(step, desired);
  const condition: Condition = obstacle === null ? await ask() : { verdict: 'skip', message: obstacle };
  const observation = 'verdict' in condition ? null : await observe();
  const decision =
    'verdict' in condition || observation === null
      ? (condition as Decision)
      : withNote(decide(step, observation, stepsState, copies), condition.note);
  stepsState.expects(step, decision);
  return { decision, observation };
}

function withNote(decision: Decision, note: string | null): Decision {
  if (decision.verdict !== 'act' || note === null) return decision;
  const { difference } = decision;
  const message = difference.message === undefined ? note : `${note}\n${difference.message}`;
  return { ...decision, difference: { ...difference, message } };
}
