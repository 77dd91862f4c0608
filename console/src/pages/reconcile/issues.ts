import type { OffAgent } from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { type OffFinding, revisionsText } from '../../../../client/src/reason-words.ts';

/** Describes why an agent is out of sync, by resource. */

type Example = OffAgent['drift'][number]['examples'][number];
type Change = Example['changes'][number];

export interface Issue {
  readonly reason: OffFinding;
  /** The name of the resource, with which the text begins; null if the issue concerns no single resource. */
  readonly name: string | null;
  readonly text: string;
}

/** Maximum length of a value in an issue, in characters. */
const maxValue = 48;

/** Returns a resource's name in the texts of its issues: its path, or its type and identity. */
export const nameOf = ({ type, identity }: { readonly type: string; readonly identity: string }): string =>
  identity.startsWith('/') || type === '' ? identity : `${type} ${identity}`;

/** Describes a changed field, for example `mode 0666, expected 0644`. */
function changeText({ field, from, to }: Change): string {
  const isLong = (from?.length ?? 0) > maxValue || (to?.length ?? 0) > maxValue;
  // A content hash means nothing to a reader.
  if (field === 'content' || isLong || (from === null && to === null)) return `${field} differs`;
  if (from === null) return `${field} missing, expected ${to}`;
  return to === null ? `${field} ${from}, expected none` : `${field} ${from}, expected ${to}`;
}

/** Describes a drifted resource, for example `/etc/motd: mode 0666, expected 0644`. */
export function driftText(example: Example): string {
  const name = nameOf(example);
  switch (example.action) {
    case 'create':
      return `${name}: missing`;
    case 'remove':
      return `${name}: unexpected`;
    case 'run':
    case 'reload':
    case 'restart':
      return `${name}: would ${example.action}`;
    default:
      return `${name}: ${example.changes.map(changeText).join('; ') || 'differs'}`;
  }
}

/**
 * Returns the issues of an agent, worst first, and how many more there are.
 * @param accepted whether to return accepted drift instead of drift that was not accepted
 */
export function issuesOf(
  agent: OffAgent,
  accepted = syncStateOf(agent, true) === 'accepted',
): { readonly issues: readonly Issue[]; readonly more: number } {
  const { drift, unfinished, unapplied, pending_removals, failed_operation, failed_check, outdated } = agent;
  const drifts = drift.filter((entry) => (entry.accepted !== null) === accepted);
  const drifted = drifts.flatMap(({ examples, assignment }) =>
    examples.map((example): Issue => {
      const by = assignment === null ? '' : ` (audit assignment ${assignment})`;
      return { reason: 'drifted', name: nameOf(example), text: `${driftText(example)}${by}` };
    }),
  );
  const driftedCount = drifts.reduce((sum, { resources }) => sum + resources, 0);
  if (accepted) return { issues: drifted, more: driftedCount - drifted.length };
  const failed: Issue[] =
    failed_operation === null || unapplied > 0
      ? []
      : [
          {
            ...{ reason: 'apply_failed', name: null },
            text: withError(`Apply ${failed_operation.status}`, failed_operation.error),
          },
        ];
  const left = unfinished.map(
    (entry): Issue =>
      entry.state === 'unapplied'
        ? {
            ...{ reason: 'unapplied', name: nameOf(entry) },
            text: withError(`${nameOf(entry)}: not applied`, entry.reason),
          }
        : { reason: 'pending_removals', name: nameOf(entry), text: `${nameOf(entry)}: to be removed` },
  );
  const checks: Issue[] =
    failed_check === null
      ? []
      : [{ reason: 'drift_failed', name: null, text: withError('Check failed', failed_check.error) }];
  const newer = (outdated?.examples ?? []).map(
    (example): Issue => ({ reason: 'outdated', name: null, text: revisionsText(example) }),
  );
  const issues = [...failed, ...drifted, ...left, ...checks, ...newer];
  const moreOutdated = (outdated?.modules ?? 0) - newer.length;
  return { issues, more: driftedCount - drifted.length + unapplied + pending_removals - left.length + moreOutdated };
}

const withError = (text: string, error: string | null): string =>
  error === null ? text : `${text}: ${operationErrorText(error)}`;
