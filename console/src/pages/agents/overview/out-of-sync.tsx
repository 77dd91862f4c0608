import type { OffAgent } from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { Link } from '@tanstack/react-router';
import { outdatedText } from '../../../../../client/src/reason-words.ts';
import { buttonClasses } from '../../../parts/button.tsx';
import { Callout } from '../../../parts/callout.tsx';
import { IssueLine } from '../../reconcile/issue-line.tsx';
import { issuesOf } from '../../reconcile/issues.ts';
import { canRepair } from '../../reconcile/off.ts';

/** Reports whether an apply repairs the differences. Drift of audit assignments is only reported. */
export const isRepairable = (off: OffAgent | null): boolean =>
  off !== null && ['out_of_sync', 'outdated'].includes(syncStateOf(off, true)) && canRepair(off);

/** States which resources and modules differ. Shows nothing if all drift was accepted. */
export function OutOfSync({ off }: { readonly off: OffAgent }) {
  const state = syncStateOf(off, true);
  if (state !== 'out_of_sync' && state !== 'outdated') return null;
  const { issues, more } = issuesOf(off);
  const [drift] = off.drift.filter(({ accepted }) => accepted === null);
  return (
    <Callout
      tone={state === 'outdated' ? 'mild' : 'warn'}
      title={
        state === 'outdated' && off.outdated !== undefined ? `Outdated: ${outdatedText(off.outdated)}` : 'Out of sync'
      }
      action={
        drift !== undefined && (
          <Link to="/drift/$record" params={{ record: drift.drift_id }} className={buttonClasses('plain')}>
            Show drift
          </Link>
        )
      }
    >
      <ul aria-label="Issues">
        {issues.map((issue) => (
          <li key={issue.text} className="min-w-0">
            <IssueLine issue={issue} maxLength={300} />
          </li>
        ))}
      </ul>
      {more > 0 && <p className="text-xs">and {more} more</p>}
    </Callout>
  );
}
