import { classNames } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';
import { type AgentTab, agentTabs } from './agent-filter.ts';

const labels: Record<AgentTab, string> = {
  all: 'All',
  approved: 'Approved',
  connected: 'Connected',
  offline: 'Offline',
  in_sync: 'In sync',
  off: 'Out of sync',
  outdated: 'Outdated',
  never_applied: 'Never applied',
  pending: 'Pending',
  rejected: 'Rejected',
};

export function StateTabs({
  tab,
  counts,
  onTab,
}: {
  readonly tab: AgentTab;
  /** Null while loading. */
  readonly counts: Readonly<Record<AgentTab, number>> | null;
  readonly onTab: (tab: AgentTab) => void;
}) {
  return (
    <div role="group" aria-label="State" className="flex shrink-0 flex-wrap gap-1 py-0.5">
      {agentTabs.map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={tab === each}
          onClick={() => onTab(each)}
          className={classNames(
            'flex h-7 shrink-0 items-center gap-1 rounded-full border px-2 text-xs max-sm:h-11 max-sm:px-3.5 max-sm:text-sm',
            tab === each
              ? 'border-accent/40 bg-accent-soft font-medium text-accent'
              : 'border-transparent text-muted hover:bg-hover hover:text-text',
          )}
        >
          {labels[each]}
          {counts !== null && (
            <span
              className={classNames(
                'tabular',
                each === 'pending' && counts.pending > 0 && tab !== each && 'font-semibold text-warn',
                each === 'offline' && counts.offline > 0 && tab !== each && 'font-semibold text-bad',
              )}
            >
              {countText(counts[each])}
            </span>
          )}
        </button>
      ))}
    </div>
  );
}
