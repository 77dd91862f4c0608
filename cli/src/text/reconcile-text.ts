import type { OffAgent, OffReason } from '@muster/protocol/http';
import { reasonWords } from '../../../client/src/reason-words.ts';
import { counted } from './style.ts';

/** Returns a line with the reasons why an agent is not in its desired state, and their counts. */
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
    apply_failed: `${failed_operation === null ? reasonWords.apply_failed : `apply ${failed_operation.status}`}${failed_operation?.error ? `: ${failed_operation.error}` : ''}`,
    drifted: drifted.join(', '),
    drift_failed: `${reasonWords.drift_failed}${failed_check?.error ? `: ${failed_check.error}` : ''}`,
    unapplied: `${unapplied} ${reasonWords.unapplied}`,
    pending_removals: `${pending_removals} ${reasonWords.pending_removals}`,
  };
  const accepted = drift.filter((each) => each.accepted !== null);
  const known = accepted.map(
    ({ resources, accepted: by }) => `${counted(resources, 'resource')} accepted: ${by?.reason}`,
  );
  return [...reasons.map((reason) => said[reason]), ...known].join('; ');
}
