import type { OffAgent, OffReason } from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { operationErrorText } from '../../../client/src/operation-error.ts';
import { outdatedText, reasonWords, revisionsText } from '../../../client/src/reason-words.ts';
import { statusText } from '../../../client/src/status-text.ts';
import { counted } from './style.ts';

/** Returns a line with the reasons why an agent is not in its desired state, and whether it is outdated. */
export function offLine({
  reasons,
  drift,
  failed_operation,
  failed_check,
  unapplied,
  pending_removals,
  outdated,
}: OffAgent): string {
  const drifted = drift
    .filter(({ accepted }) => accepted === null)
    .map(
      ({ assignment, resources }) =>
        `${counted(resources, 'resource')} drifted${assignment === null ? '' : ` from ${assignment}`}`,
    );
  const said: Readonly<Record<OffReason, string>> = {
    apply_failed: `${failed_operation === null ? reasonWords.apply_failed : `apply ${statusText(failed_operation.status)}`}${failed_operation?.error ? `: ${operationErrorText(failed_operation.error)}` : ''}`,
    drifted: drifted.join(', '),
    drift_failed: `${reasonWords.drift_failed}${failed_check?.error ? `: ${failed_check.error}` : ''}`,
    unapplied: `${unapplied} ${reasonWords.unapplied}`,
    pending_removals: `${pending_removals} ${reasonWords.pending_removals}`,
  };
  const accepted = drift.filter((each) => each.accepted !== null);
  const known = accepted.map(
    ({ resources, accepted: by }) => `${counted(resources, 'resource')} accepted: ${by?.reason}`,
  );
  const newer = outdated === undefined ? [] : [`outdated: ${outdatedText(outdated)}`];
  return [...reasons.map((reason) => said[reason]), ...newer, ...known].join('; ');
}

/**
 * Returns an agent's sync state as a word if the agent needs an apply; otherwise null.
 * @param off the agent's entry in the list of agents that are out of sync or outdated
 */
export function syncWord(
  off: Pick<OffAgent, 'reasons' | 'drift' | 'outdated'> | undefined,
): 'out of sync' | 'outdated' | null {
  const state = syncStateOf(off ?? null, true);
  return state === 'out_of_sync' ? 'out of sync' : state === 'outdated' ? 'outdated' : null;
}

/** Names outdated modules with their revisions: `motd: revision 3 applied, newest 4`. */
export function revisionsLine({ modules, examples }: NonNullable<OffAgent['outdated']>): string {
  const more = modules - examples.length;
  return `${examples.map(revisionsText).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
