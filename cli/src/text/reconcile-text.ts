import type { OffAgent, OffReason } from '@muster/protocol/http';
import { counted } from './style.ts';

/** What is off with an agent, as a person reads it. */

/** After a number of agents. */
export const offWords: Readonly<Record<OffReason, string>> = {
  apply_failed: 'failed to apply',
  drifted: 'drifted',
  drift_failed: 'could not be checked',
  unapplied: 'with resources that could not be applied',
  pending_removals: 'with removals to come',
};

/** One line: what is off, with how much of it. */
export function offLine({
  reasons,
  drift,
  failed_operation,
  failed_check,
  unapplied,
  pending_removals,
}: OffAgent): string {
  const drifted = drift
    .filter(({ accepted }) => accepted === null)
    .map(
      ({ assignment, resources }) =>
        `${counted(resources, 'resource')} drifted${assignment === null ? '' : ` from ${assignment}`}`,
    );
  const said: Readonly<Record<OffReason, string>> = {
    apply_failed: `apply ${failed_operation?.status ?? 'failed'}${failed_operation?.error ? `: ${failed_operation.error}` : ''}`,
    drifted: drifted.join(', '),
    drift_failed: `check failed${failed_check?.error ? `: ${failed_check.error}` : ''}`,
    unapplied: `${unapplied} not applied`,
    pending_removals: `${pending_removals} to be removed`,
  };
  const accepted = drift.filter((each) => each.accepted !== null);
  const known = accepted.map(
    ({ resources, accepted: by }) => `${counted(resources, 'resource')} accepted: ${by?.reason}`,
  );
  return [...reasons.map((reason) => said[reason]), ...known].join('; ');
}
