import { useNavigate } from '@tanstack/react-router';
import { Page } from '../../parts/page.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { DriftChecks } from '../drift/drift-checks.tsx';
import { OffTab } from './off-tab.tsx';

export type OutOfSyncTab = 'action' | 'accepted' | 'checks';

const subtitles: Readonly<Record<OutOfSyncTab, string>> = {
  action: 'Agents that differ from their desired state or run old revisions.',
  accepted: 'Agents with drift that an operator accepted.',
  checks: 'The latest drift check of each agent.',
};

/** Shows the agents that are not in their desired state, those whose drift was accepted, and all drift checks. */
export function OutOfSyncPage() {
  const [tab] = useUrlState<OutOfSyncTab>('tab', 'action');
  const navigate = useNavigate();
  return (
    <Page fill title="Out of sync" description={subtitles[Object.hasOwn(subtitles, tab) ? tab : 'action']}>
      <Tabs<OutOfSyncTab>
        fill
        label="Out of sync"
        value={tab}
        // Each tab has its own filters.
        onChange={(next) => void navigate({ to: '.', search: (next === 'action' ? {} : { tab: next }) as never })}
        tabs={[
          { value: 'action', label: 'Needs action', content: () => <OffTab key="action" shows="action" /> },
          { value: 'accepted', label: 'Accepted', content: () => <OffTab key="accepted" shows="accepted" /> },
          { value: 'checks', label: 'All checks', content: () => <DriftChecks /> },
        ]}
      />
    </Page>
  );
}
