import type { Agent } from '@muster/protocol/http';
import { isKeyId } from '@muster/protocol/identity';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { TriangleAlert } from 'lucide-react';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { agentQuery } from '../../api/agents.ts';
import { loadCode } from '../../api/live/load-code.ts';
import { offAgentQuery } from '../../api/reconcile.ts';
import { StateBadge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { PanelSkeleton } from '../../parts/skeletons.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { cutText, Line, Text, visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { useOpensApply } from '../apply/opens-apply.ts';
import { ColumnsSkeleton, ItemPage, LoadedItem } from '../item-page.tsx';
import { RepairDialog } from '../reconcile/repair-dialog.tsx';
import { AgentActions } from './agent-actions.tsx';
import type { AgentDialog } from './agent-dialogs.tsx';
import { DriftList, HistoryList, OperationsList, TerminalsList } from './agent-lists.tsx';
import { displayName, stateOf, systemText, tones } from './agent-state.ts';
import { ApprovalCheck } from './approval-check.tsx';
import { AttributesTab } from './attributes-tab.tsx';
import { MetricsTab } from './metrics-tab.tsx';
import { AgentOverview } from './overview/agent-overview.tsx';
import { isRepairable, OutOfSync } from './overview/out-of-sync.tsx';
import { StateTab } from './state-tab.tsx';

export function AgentPage() {
  const { agent: id } = useParams({ strict: false }) as { agent: string };
  const query = useQuery(agentQuery(id));
  return (
    <LoadedItem
      of="agent"
      title={isKeyId(id) ? 'Agent' : visibleText(cutText(id, 64))}
      query={query}
      skeleton={<ColumnsSkeleton tabs={Object.values(tabLabels)} />}
    >
      {(agent) => <AgentDetails key={agent.node_id} agent={agent} />}
    </LoadedItem>
  );
}

const ValuesTab = lazy(() => loadCode(async () => ({ default: (await import('./values/values-tab.tsx')).ValuesTab })));

const tabLabels = {
  overview: 'Overview',
  metrics: 'Metrics',
  state: 'State',
  values: 'Values',
  drift: 'Drift',
  operations: 'Operations',
  terminals: 'Terminals',
  attributes: 'Attributes',
  history: 'History',
} as const;
type TabName = keyof typeof tabLabels;

/** Tabs of an agent that is pending approval. The others need an approved agent. */
const pendingTabs: readonly TabName[] = ['overview', 'attributes', 'history'];

const tabContents: Readonly<Record<TabName, (props: { readonly agent: Agent }) => ReactNode>> = {
  overview: AgentOverview,
  metrics: MetricsTab,
  state: StateTab,
  values: ({ agent }) => (
    <Suspense fallback={<PanelSkeleton rows={6} size="line" />}>
      <ValuesTab agent={agent} />
    </Suspense>
  ),
  drift: DriftList,
  operations: OperationsList,
  terminals: TerminalsList,
  attributes: AttributesTab,
  history: HistoryList,
};

function AgentDetails({ agent }: { readonly agent: Agent }) {
  const [chosen, setTab] = useUrlState<TabName>('tab', 'overview');
  const [dialog, setDialog] = useState<AgentDialog>(null);
  const asked = useOpensApply();
  const [answered, setAnswered] = useState<number | null>(null);
  const [isRepairing, setRepairing] = useState(false);
  const state = stateOf(agent);
  const approved = agent.status === 'approved';
  const { data: off, isLoading } = useQuery({ ...offAgentQuery(agent.node_id), enabled: approved });
  const keepsUnassigned = isRepairable(off ?? null);
  const onApply = () => (keepsUnassigned ? setRepairing(true) : setDialog('apply'));
  if (asked !== answered && !isLoading) {
    setAnswered(asked);
    if (asked !== null) onApply();
  }
  const names = Object.keys(tabLabels).filter(
    (name): name is TabName => agent.status !== 'pending' || pendingTabs.includes(name as TabName),
  );
  const tabs = names.map((value) => {
    const Content = tabContents[value];
    return { value, label: tabLabels[value], content: () => <Content agent={agent} /> };
  });
  const tab = names.includes(chosen) ? chosen : 'overview';
  return (
    <ItemPage
      of="agent"
      name={visibleText(cutText(displayName(agent), 64))}
      title={
        <span className="flex min-w-0 items-center gap-2.5">
          <Line text={displayName(agent)} maxLength={64} />
          <StateBadge tone={tones[state]}>{state}</StateBadge>
        </span>
      }
      subtitle={
        <span className="flex flex-wrap items-center gap-x-2">
          <Text text={systemText(agent) || 'unknown system'} maxLength={60} />
          <span aria-hidden="true">·</span>
          <code className="font-mono text-xs">{agent.initial_ip}</code>
          {approved && agent.pin_source === 'first_use' && (
            <span
              className="inline-flex items-center gap-1 text-warn"
              title="The agent did not know the key of this orchestrator at its first connection, so it trusted the key that it received."
            >
              <TriangleAlert aria-hidden="true" className="size-3.5" />
              trusted the orchestrator on first use
            </span>
          )}
        </span>
      }
      actions={
        <AgentActions
          {...{ agent, dialog, keepsUnassigned }}
          onApply={isLoading ? null : onApply}
          onDialog={setDialog}
        />
      }
      banner={
        <>
          {state === 'offline' && <Offline agent={agent} onQueue={onApply} />}
          {agent.status === 'pending' && <ApprovalCheck agent={agent} onApprove={() => setDialog('approve')} />}
          {off && <OutOfSync off={off} />}
        </>
      }
    >
      <Tabs label="Agent" value={tab} onChange={(next) => setTab(next, true)} tabs={tabs} />
      {off && isRepairing && <RepairDialog agents={[off]} onClose={() => setRepairing(false)} />}
    </ItemPage>
  );
}

/** Explains that plans need a connected agent, and offers to queue an apply for an offline one. */
function Offline({ agent, onQueue }: { readonly agent: Agent; readonly onQueue: () => void }) {
  return (
    <Callout
      tone="neutral"
      title={
        <>
          Offline. Last seen <Time at={agent.last_seen_at} />
        </>
      }
      action={<Button onClick={onQueue}>Queue an apply…</Button>}
    >
      Plans, drift checks, and terminals need a connection. Check that the machine runs and that its service
      muster-agent is active.
    </Callout>
  );
}
