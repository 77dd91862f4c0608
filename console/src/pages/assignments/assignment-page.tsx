import { ApiError } from '@muster/protocol/client';
import type { Agent, Assignment } from '@muster/protocol/http';
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { Play, ScanSearch, Trash2 } from 'lucide-react';
import { useMemo, useState } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { assignmentQuery, removeAssignment } from '../../api/assignments.ts';
import { runAssignment, runsQuery } from '../../api/runs.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { ModuleLinks, OperatorName } from '../links.tsx';
import { ApplyDialog } from './apply-dialog.tsx';
import { AssignmentForm } from './assignment-form.tsx';
import { AssignmentRuns } from './assignment-runs.tsx';
import { MatchedAgents, matchText } from './matched-agents.tsx';
import { byName } from './matching.ts';
import { textOf } from './parameters.ts';

export function AssignmentPage() {
  const { assignment: name = '' } = useParams({ strict: false });
  const query = useQuery(assignmentQuery(name));
  if (query.data !== undefined) return <AssignmentDetails key={name} assignment={query.data} />;
  return (
    <Page title={visibleText(name)}>
      {query.isPending ? (
        <SkeletonRows />
      ) : query.error instanceof ApiError && query.error.problem.status === 404 ? (
        <Empty
          title="Assignment not found"
          action={
            <Link to="/assignments" className={buttonClasses()}>
              All assignments
            </Link>
          }
        >
          It may have been removed. Applied resources stay until the next apply on each agent.
        </Empty>
      ) : (
        <Failure error={query.error} retry={() => void query.refetch()} />
      )}
    </Page>
  );
}

type Tab = 'overview' | 'runs' | 'edit';

function AssignmentDetails({ assignment }: { readonly assignment: Assignment & { readonly matches: string[] } }) {
  const { name, mode, matches } = assignment;
  const navigate = useNavigate();
  const [tab, setTab] = useUrlState<Tab>('tab', 'overview');
  const [applying, setApplying] = useState(false);
  const [removing, setRemoving] = useState(false);
  const { data: agents } = useQuery(agentsQuery);
  const matched = useMemo(() => {
    const ids = new Set(matches);
    return agents?.filter(({ node_id }) => ids.has(node_id)).sort(byName) ?? [];
  }, [agents, matches]);
  const toRun = (run: string) => void navigate({ to: '/runs/$run', params: { run } });
  const plan = useMutation({
    mutationFn: () => runAssignment(name, 'plan'),
    onSuccess: ({ run_id }) => toRun(run_id),
    onError: notifyError,
  });
  return (
    <Page
      title={visibleText(name)}
      subtitle={
        <span className="flex flex-wrap items-center gap-x-2">
          <Badge tone={mode === 'audit' ? 'info' : 'neutral'}>{mode}</Badge>
          {assignment.window_only && <Badge>windows only</Badge>}
          <span>
            created by <OperatorName id={assignment.created_by} />, <Time at={assignment.created_at} />
          </span>
        </span>
      }
      actions={
        <>
          <Button look="danger" icon={<Trash2 className="size-4" />} onClick={() => setRemoving(true)}>
            Remove…
          </Button>
          <Button
            icon={<ScanSearch className="size-4" />}
            busy={plan.isPending}
            disabled={matches.length === 0}
            onClick={() => plan.mutate()}
          >
            Plan
          </Button>
          {mode === 'enforce' && (
            <Button
              look="primary"
              icon={<Play className="size-4" />}
              disabled={matches.length === 0}
              onClick={() => setApplying(true)}
            >
              Apply…
            </Button>
          )}
        </>
      }
    >
      <Tabs<Tab>
        label="Assignment"
        value={tab}
        onChange={setTab}
        tabs={[
          {
            value: 'overview',
            label: 'Overview',
            content: () => <Overview assignment={assignment} matched={matched} isKnown={agents !== undefined} />,
          },
          { value: 'runs', label: 'Runs', content: () => <AssignmentRuns name={name} /> },
          {
            value: 'edit',
            label: 'Edit',
            content: () => (
              <AssignmentForm
                base={assignment}
                onCancel={() => setTab('overview')}
                onDone={() => {
                  notify('Saved. Changes take effect with the next apply.');
                  setTab('overview');
                }}
              />
            ),
          },
        ]}
      />
      {applying && (
        <ApplyDialog open onOpenChange={setApplying} assignment={assignment} count={matches.length} onStarted={toRun} />
      )}
      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={`Remove the assignment ${visibleText(name)}?`}
        action="Remove"
        onConfirm={async () => {
          await removeAssignment(name);
          void navigate({ to: '/assignments' });
        }}
      >
        It matches {matched.length === 0 ? 'no agent' : matchText(matched)}. Applied resources stay there until the next
        apply, which removes those that no assignment declares.
      </Confirm>
    </Page>
  );
}

function Overview({
  assignment,
  matched,
  isKnown,
}: {
  readonly assignment: Assignment;
  readonly matched: readonly Agent[];
  readonly isKnown: boolean;
}) {
  const { modules, selector, description, parameters } = assignment;
  const values = Object.entries(parameters).flatMap(([module, set]) =>
    Object.entries(set).map(([name, value]) => ({ module, name, value: textOf(value) })),
  );
  const runs = useInfiniteQuery(runsQuery({ assignment: assignment.name }));
  const hasNoRuns = runs.data?.pages[0]?.length === 0;
  return (
    <div className="space-y-4">
      {hasNoRuns && (
        <Callout tone="info" title="No runs yet">
          Plan it first. A plan shows what an apply would change on each agent, and changes nothing.
        </Callout>
      )}
      <div className="grid gap-4 lg:grid-cols-2">
        <div className="min-w-0 space-y-4">
          <Panel title="Assignment">
            <div className="space-y-4">
              {description !== null && (
                <p>
                  <Text text={description} maxLength={400} />
                </p>
              )}
              <Facts
                facts={[
                  ['Modules, in order', <ModuleLinks key="modules" modules={modules} />],
                  [
                    'Selector',
                    <code key="selector" className="font-mono text-xs [overflow-wrap:anywhere]">
                      {selector === '' ? 'empty, matches no agent' : visibleText(selector)}
                    </code>,
                  ],
                ]}
              />
            </div>
          </Panel>
          {!hasNoRuns && <AssignmentRuns name={assignment.name} title="Last runs" maxRuns={5} />}
        </div>
        <Panel
          title={isKnown ? `Matches ${matched.length === 0 ? 'no agent' : matchText(matched)}` : 'Matches'}
          className="self-start"
        >
          {!isKnown ? (
            <SkeletonRows rows={2} />
          ) : matched.length === 0 ? (
            <p className="text-muted text-sm">No approved agent matches now. Change the selector, or tag agents.</p>
          ) : (
            <MatchedAgents agents={matched} />
          )}
        </Panel>
      </div>
      {values.length > 0 && (
        <Panel title="Parameters" flush>
          <div className="overflow-x-auto">
            <table className="w-full text-left text-sm">
              <thead className="border-b text-muted text-xs">
                <tr>
                  <th className="px-4 py-2 font-medium">Module</th>
                  <th className="px-4 py-2 font-medium">Parameter</th>
                  <th className="w-2/3 px-4 py-2 font-medium">Value</th>
                </tr>
              </thead>
              <tbody className="divide-y">
                {values.map(({ module, name, value }) => (
                  <tr key={`${module} ${name}`}>
                    <td className="px-4 py-1.5">{visibleText(module)}</td>
                    <td className="px-4 py-1.5 font-mono text-xs">{visibleText(name)}</td>
                    <td className="whitespace-pre-wrap px-4 py-1.5 font-mono text-xs">
                      <Text text={value} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      )}
    </div>
  );
}

export function NewAssignmentPage() {
  const navigate = useNavigate();
  return (
    <Page title="New assignment" subtitle="Assigns modules to all current and future agents that match a selector.">
      <AssignmentForm
        base={null}
        onCancel={() => void navigate({ to: '/assignments' })}
        onDone={({ name }) => {
          notify('Created. Plan it to see its changes.');
          void navigate({ to: '/assignments/$assignment', params: { assignment: name } });
        }}
      />
    </Page>
  );
}
