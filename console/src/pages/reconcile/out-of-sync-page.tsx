import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { Page } from '../../parts/page.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { DriftChecks } from '../drift/drift-checks.tsx';
import { isIn, type OffList } from './off.ts';
import { OffTab } from './off-tab.tsx';
import { useFleetSync } from './use-fleet-sync.ts';

export type OutOfSyncTab = OffList | 'checks';

const subtitles: Readonly<Record<OutOfSyncTab, string>> = {
  off: 'Agents that differ from their desired state.',
  outdated: 'Agents that run old revisions of their modules.',
  accepted: 'Agents with drift that an operator accepted.',
  checks: 'The latest drift check of each agent.',
};
const labels = { off: 'Out of sync', outdated: 'Outdated', accepted: 'Accepted' } as const;
const lists = ['off', 'outdated', 'accepted'] as const satisfies readonly OffList[];

/** Shows the agents that are not in their desired state, those whose drift was accepted, and all drift checks. */
export function OutOfSyncPage() {
  const [chosen] = useUrlState<OutOfSyncTab>('tab', 'off');
  const [reason] = useUrlState<string>('reason', '');
  const navigate = useNavigate();
  const off = useFleetSync()?.off;
  const counts = useMemo(() => {
    const agents = off && [...off.values()];
    return (list: OffList) => agents?.filter(isIn[list]).length;
  }, [off]);
  // Links of former versions select outdated agents by reason.
  const tab =
    chosen === 'off' && reason === 'outdated' ? 'outdated' : Object.hasOwn(subtitles, chosen) ? chosen : 'off';
  return (
    <Page fill title="Out of sync" description={subtitles[tab]}>
      <Tabs<OutOfSyncTab>
        fill
        label="Out of sync"
        value={tab}
        // Each tab has its own filters.
        onChange={(next) => void navigate({ to: '.', search: (next === 'off' ? {} : { tab: next }) as never })}
        tabs={[
          ...lists.map((list) => ({
            ...{ value: list, label: labels[list], count: counts(list) },
            content: () => <OffTab key={list} shows={list} />,
          })),
          { value: 'checks', label: 'All checks', content: () => <DriftChecks /> },
        ]}
      />
    </Page>
  );
}
