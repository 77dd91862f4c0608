import { ApiError } from '@muster/protocol/client';
import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { TriangleAlert } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { agentQuery } from '../../api/agents.ts';
import { loadCode } from '../../api/live/load-code.ts';
import { offAgentQuery } from '../../api/reconcile.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, PanelSkeletons, SkeletonRows } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { cutText, Line, Text, visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { useOpensApply } from '../apply/opens-apply.ts';
import { ListLink } from '../links.tsx';
import { AgentActions } from './agent-actions.tsx';
import type { AgentDialog } from './agent-dialogs.tsx';
import { DriftList, HistoryList, OperationsList, TerminalsList } from './agent-lists.tsx';
import { displayName, stateOf, systemText, tones } from './agent-state.ts';
import { ApprovalCheck } from './approval-check.tsx';
import { AttributesTab } from './attributes-tab.tsx';
import { MetricsTab } from './metrics-tab.tsx';
import { AgentOverview } from './overview/agent-overview.tsx';
import { isFixable } from './overview/out-of-sync.tsx';
import { StateTab } from './state-tab.tsx';

export function AgentPage() {
  const { agent: id } = useParams({ strict: false }) as { agent: string };
  const { data, error, refetch } = useQuery(agentQuery(id));
  if (data !== undefined) return <AgentDetails key={data.node_id} agent={data} />;
  const isMissing = error instanceof ApiError && error.problem.status === 404;
  return (
    <Page
      title="Agent"
      name={visibleText(cutText(id, 64))}
      crumbs={[
        <ListLink key="list" to="/agents">
          Agents
        </ListLink>,
      ]}
    >
      {isMissing ? (
        <Empty
          title="Agent not found"
          action={
            <Link to="/agents" className={buttonClasses()}>
              All agents
            </Link>
          }
        >
          It may have been removed or renamed.
        </Empty>
      ) : error === null ? (
        <PanelSkeletons label="Loading the agent" />
      ) : (
        <Failure error={error} retry={() => void refetch()} />
      )}
    </Page>
  );
}

const ValuesTab = lazy(() => loadCode(async () => ({ default: (await import('./values/values-tab.tsx')).ValuesTab })));

const tabNames = [
  'overview',
  'metrics',
  'state',
  'values',
  'drift',
  'operations',
  'terminals',
  'attributes',
  'history',
] as const;
type TabName = (typeof tabNames)[number];

function AgentDetails({ agent }: { readonly agent: Agent }) {
  const [chosen, setTab] = useUrlState<TabName>('tab', 'overview');
  const [dialog, setDialog] = useState<AgentDialog>(null);
  const asked = useOpensApply();
  const [answered, setAnswered] = useState<number | null>(null);
  if (asked !== answered) {
    setAnswered(asked);
    if (asked !== null) setDialog('apply');
  }
  const state = stateOf(agent);
  const approved = agent.status === 'approved';
  const { data: off } = useQuery({ ...offAgentQuery(agent.node_id), enabled: approved });
  const hasFix = isFixable(off ?? null);
  const tabs = [
    { value: 'overview' as const, label: 'Overview', content: () => <AgentOverview agent={agent} /> },
    ...(agent.status === 'pending'
      ? []
      : [
          { value: 'metrics' as const, label: 'Metrics', content: () => <MetricsTab agent={agent} /> },
          { value: 'state' as const, label: 'State', content: () => <StateTab agent={agent} /> },
          {
            value: 'values' as const,
            label: 'Values',
            content: () => (
              <Suspense fallback={<SkeletonRows rows={8} />}>
                <ValuesTab agent={agent} />
              </Suspense>
            ),
          },
          { value: 'drift' as const, label: 'Drift', content: () => <DriftList agent={agent} /> },
          { value: 'operations' as const, label: 'Operations', content: () => <OperationsList agent={agent} /> },
          { value: 'terminals' as const, label: 'Terminals', content: () => <TerminalsList agent={agent} /> },
        ]),
    { value: 'attributes' as const, label: 'Attributes', content: () => <AttributesTab agent={agent} /> },
    { value: 'history' as const, label: 'History', content: () => <HistoryList agent={agent} /> },
  ];
  const tab = tabs.some(({ value }) => value === chosen) ? chosen : 'overview';
  return (
    <Page
      name={visibleText(cutText(displayName(agent), 64))}
      crumbs={[
        <ListLink key="list" to="/agents">
          Agents
        </ListLink>,
      ]}
      title={
        <span className="flex min-w-0 items-center gap-2.5">
          <Line text={displayName(agent)} maxLength={64} />
          <Badge tone={tones[state]}>{state}</Badge>
        </span>
      }
      subtitle={
        <span className="flex flex-wrap items-center gap-x-2">
          {!agent.connected && (
            <>
              <span>
                last seen <Time at={agent.last_seen_at} />
              </span>
              <span aria-hidden="true">·</span>
            </>
          )}
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
        <AgentActions agent={agent} dialog={dialog} onDialog={setDialog} hasFix={tab === 'overview' && hasFix} />
      }
    >
      {state === 'offline' && <Offline agent={agent} onQueue={() => setDialog('apply')} />}
      {agent.status === 'pending' && (
        <div className="mb-4">
          <ApprovalCheck agent={agent} onApprove={() => setDialog('approve')} />
        </div>
      )}
      <Tabs label="Agent" value={tab} onChange={(next) => setTab(next, true)} tabs={tabs} />
    </Page>
  );
}

/** Explains that plans need a connected agent, and offers to queue an apply for an offline one. */
function Offline({ agent, onQueue }: { readonly agent: Agent; readonly onQueue: () => void }) {
  return (
    <div className="mb-4">
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
    </div>
  );
}
