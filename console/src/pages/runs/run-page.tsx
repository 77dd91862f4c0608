import type { Run } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useMemo } from 'react';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { type RunTerms, runQuery, runTermsQuery } from '../../api/runs.ts';
import { Callout } from '../../parts/callout.tsx';
import { Id } from '../../parts/copy.tsx';
import { Facts } from '../../parts/facts.tsx';
import { sentence } from '../../parts/form/fan-out.ts';
import { Panel } from '../../parts/panel.tsx';
import { durationText } from '../../parts/resource/resource-row.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { hasEnded, StatusBadge } from '../../parts/work-status.tsx';
import { ItemPage, LoadedItem, ReportSkeleton } from '../item-page.tsx';
import { AgentLink, AssignmentLink, ModuleLinks, OperatorName, RunLink } from '../links.tsx';
import { RunActions } from './run-actions.tsx';
import { RunAgents } from './run-agents.tsx';
import { RunChanges } from './run-changes.tsx';
import { canariesOf, countsOf, haltReason, outcomeOfResult } from './run-groups.ts';
import { OutcomeBar, RunProgress } from './run-progress.tsx';

export function RunPage() {
  const { run: id } = useParams({ strict: false }) as { run: string };
  const query = useQuery(runQuery(id));
  return (
    <LoadedItem of="run" title="Run" query={query} skeleton={<ReportSkeleton tabs={['Changes', 'Agents']} />}>
      {(run) => <RunDetails key={id} run={run} />}
    </LoadedItem>
  );
}

const noCanaries: ReadonlySet<string> = new Set();

function RunDetails({ run }: { readonly run: Run }) {
  const { kind, status, results, assignment } = run;
  const { data: terms } = useQuery(runTermsQuery(run));
  const [view, setView] = useUrlState<'changes' | 'agents'>('view', kind === 'plan' ? 'changes' : 'agents');
  const [outcome] = useUrlState<string>('outcome', '');
  const navigate = useNavigate();
  const canary = terms?.canary ?? 0;
  const canaries = useMemo(() => (canary === 0 ? noCanaries : canariesOf(results, canary)), [results, canary]);
  const verb = kind === 'plan' ? 'Plan' : 'Apply';
  return (
    <ItemPage
      of="run"
      name={`${verb} of ${assignment ?? `${results.length} agents`}`}
      title={
        <span className="flex min-w-0 flex-wrap items-center gap-x-2.5 gap-y-1">
          <span className="flex min-w-0 gap-1.5">
            {verb} {assignment === null ? `on ${results.length === 1 ? '1 agent' : `${results.length} agents`}` : 'of'}
            {assignment !== null && <AssignmentLink name={assignment} />}
          </span>
          <StatusBadge status={status} />
        </span>
      }
      actions={<RunActions run={run} terms={terms ?? null} />}
      banner={status === 'halted' && <Halted run={run} />}
    >
      <div className="space-y-4">
        <Panel>
          <Facts
            facts={[
              assignment === null && terms ? ['Modules', <ModuleLinks key="m" modules={terms.modules} />] : null,
              [
                'Agents',
                <span key="n" className="tabular">
                  {results.length}
                </span>,
              ],
              ['Requested by', <OperatorName key="o" id={run.requested_by} />],
              ['Started', <Time key="s" at={run.started_at} />],
              run.finished_at === null
                ? null
                : [
                    'Duration',
                    <span key="e" className="tabular">
                      {durationText((run.finished_at - run.started_at) * 1000) || '<1s'}
                    </span>,
                  ],
              terms?.plan_run_id ? ['From plan', <RunLink key="p" id={terms.plan_run_id} />] : null,
              ['Run', <Id key="i" id={run.run_id} />],
            ]}
          />
          <div className="mt-4 border-t pt-4">
            <RunProgress
              results={results}
              kind={kind}
              canaries={canaries}
              chosen={outcome}
              onChoose={(next) =>
                void navigate({
                  to: '.',
                  search: (next === '' ? { view: 'agents' } : { view: 'agents', outcome: next }) as never,
                  resetScroll: false,
                })
              }
            />
            {terms && <Waves run={run} terms={terms} canaries={canaries} />}
          </div>
        </Panel>
        <Tabs
          label="Run"
          value={view}
          onChange={setView}
          tabs={[
            {
              value: 'changes',
              label: kind === 'plan' ? 'What would change' : 'Changes',
              content: () => <RunChanges results={results} kind={kind} />,
            },
            {
              value: 'agents',
              label: 'Agents',
              count: results.length,
              content: () => <RunAgents run={run} canaries={canaries} />,
            },
          ]}
        />
      </div>
    </ItemPage>
  );
}

function Halted({ run: { results } }: { readonly run: Run }) {
  const { untried } = countsOf(results);
  const reason = haltReason(results);
  const failed = results.find((result) => outcomeOfResult(result) === 'failed');
  return (
    <Callout
      tone="bad"
      title={reason === null ? 'Run halted because of failures' : <Text text={`Run halted: ${reason}`} />}
    >
      {failed !== undefined && (
        <p>
          <AgentLink id={failed.node_id} name={failed.name} />:{' '}
          <Text text={operationErrorText(failed.error ?? 'failed')} maxLength={400} />
        </p>
      )}
      {untried > 0 && <>{untried === 1 ? '1 agent was' : `${untried} agents were`} skipped. </>}
      Fix the failures, then retry.
    </Callout>
  );
}

/** Shows a run's rollout options and the progress of its waves. */
function Waves({
  run: { results, status, kind },
  terms,
  canaries,
}: {
  readonly run: Run;
  readonly terms: RunTerms;
  readonly canaries: ReadonlySet<string>;
}) {
  const { canary, batch, max_failures, offline } = terms;
  const done = (of: readonly Run['results'][number][]) =>
    of.filter((result) => hasEnded(result.status) && outcomeOfResult(result) !== 'untried').length;
  const first = results.filter(({ node_id }) => canaries.has(node_id));
  const others = results.filter(({ node_id }) => !canaries.has(node_id));
  const waves = [
    ...(canary > 0
      ? [{ name: 'Canary', of: first, total: Math.min(canary, results.length), note: 'runs first, all must succeed' }]
      : []),
    {
      name: canary > 0 ? 'Remaining' : 'Agents',
      of: others,
      total: results.length - (canary > 0 ? Math.min(canary, results.length) : 0),
      note: batch === null ? null : `at most ${batch} at a time`,
    },
  ].filter(({ total }) => total > 0);
  return (
    <div className="mt-3 space-y-2">
      {(status === 'running' || canary > 0) && (
        <ol className="grid gap-2 sm:grid-cols-2" aria-label="Waves">
          {waves.map(({ name, of, total, note }) => {
            const ended = Math.min(total, done(of));
            const skipped = countsOf(of).untried;
            const counts = [
              ...(skipped < total ? [`${ended} of ${total} ended`] : []),
              ...(skipped > 0 ? [`${skipped} skipped`] : []),
            ];
            return (
              <li key={name} className="rounded-md bg-raised px-3 py-2 text-sm">
                <div className="flex flex-wrap items-baseline gap-x-2">
                  <span className="font-medium">{name}</span>
                  <span className="tabular text-muted text-xs">{counts.join(', ')}</span>
                  {note !== null && <span className="ml-auto text-muted text-xs">{note}</span>}
                </div>
                <OutcomeBar results={of} kind={kind} className="mt-1.5 h-1" />
              </li>
            );
          })}
        </ol>
      )}
      <p className="text-muted text-xs">
        {sentence(
          {
            ...(canary > 0 ? { canary } : {}),
            ...(batch === null ? {} : { batch }),
            ...(max_failures === null ? {} : { max_failures }),
            offline,
          },
          results.length,
        )}
      </p>
    </div>
  );
}
