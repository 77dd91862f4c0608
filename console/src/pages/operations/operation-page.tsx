import type { Operation } from '@muster/protocol/http';
import { endedStale } from '@muster/protocol/stale-plan';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { Ban, Play, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { agentQuery, useAgentName } from '../../api/agents.ts';
import { loadUnassignedModules } from '../../api/modules/unassigned-modules.ts';
import { cancel, operationQuery, outputQuery, startPlan } from '../../api/operations.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Id } from '../../parts/copy.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Panel } from '../../parts/panel.tsx';
import { ProgressBar } from '../../parts/progress-bar.tsx';
import { ResourceResults } from '../../parts/resource/resource-results.tsx';
import { durationText } from '../../parts/resource/resource-row.tsx';
import { Empty, Problem } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { hasEnded, StatusBadge } from '../../parts/work-status.tsx';
import { ApplyAgentDialog } from '../apply/apply-agent-dialog.tsx';
import { ItemPage, LoadedItem, ReportSkeleton } from '../item-page.tsx';
import { AgentLink, agentWords, ModuleLinks, NamedRunLink, OperationLink, OperatorName } from '../links.tsx';

export function OperationPage() {
  const { operation: id } = useParams({ strict: false }) as { operation: string };
  const query = useQuery(operationQuery(id));
  return (
    <LoadedItem of="operation" title="Operation" query={query} skeleton={<ReportSkeleton />}>
      {(operation) => <OperationDetails key={id} operation={operation} />}
    </LoadedItem>
  );
}

/** Shows when the plan of an apply was requested, if the plan is still stored. */
function PlanTime({ id }: { readonly id: string }) {
  const { data: plan } = useQuery(operationQuery(id));
  return (
    plan !== undefined && (
      <p>
        The plan was requested <Time at={plan.created_at} />.
      </p>
    )
  );
}

function OperationDetails({ operation }: { readonly operation: Operation }) {
  const { kind, status, node_id } = operation;
  const ended = hasEnded(status);
  const { data: output } = useQuery(outputQuery(operation));
  const verb = kind === 'plan' ? 'Plan' : 'Apply';
  const agentName = useAgentName(node_id);
  return (
    <ItemPage
      of="operation"
      name={`${verb} on ${agentWords(agentName)}`}
      under={[
        operation.run_id === null ? (
          <AgentLink key="agent" id={node_id} />
        ) : (
          <NamedRunLink key="run" id={operation.run_id} kind={kind} />
        ),
      ]}
      title={
        <span className="flex min-w-0 items-center gap-2.5">
          <span className="flex min-w-0 gap-1.5">
            {verb} on <AgentLink id={node_id} />
          </span>
          <StatusBadge status={status} />
        </span>
      }
      actions={<Actions operation={operation} />}
      banner={<Notice operation={operation} />}
    >
      <div className="space-y-4">
        <Panel>
          <Facts
            facts={[
              ['Result', <SummaryLine key="s" wrap summary={operation.summary} resultKind={kind} />, 'wide'],
              ['Modules', <ModuleLinks key="m" modules={operation.modules} />],
              ['Requested by', <OperatorName key="o" id={operation.requested_by} />],
              ['Requested', <Time key="c" at={operation.created_at} />],
              hasWaited(operation) ? ['Started', <Time key="t" at={operation.started_at} />] : null,
              operation.finished_at === null ? null : ['Duration', <Took key="f" operation={operation} />],
              operation.run_id === null
                ? null
                : ['Part of', <NamedRunLink key="r" id={operation.run_id} kind={kind} />],
              operation.plan_id === null ? null : ['From plan', <OperationLink key="p" id={operation.plan_id} />],
              ['Operation', <Id key="i" id={operation.operation_id} />],
            ]}
          />
          {!ended && <Progress operation={operation} />}
        </Panel>
        <section aria-labelledby="resources">
          <h2 id="resources" className="sr-only">
            Resources
          </h2>
          <ResourceResults
            results={operation.resources}
            resultKind={kind}
            output={output?.output}
            running={status === 'running'}
            empty={
              <div className="rounded-lg border bg-surface">
                <Empty title={ended ? 'No resources' : 'No results yet'}>
                  {ended
                    ? operation.error === null
                      ? 'No module applies to this machine, and there was nothing to remove.'
                      : 'The operation ended before the first resource. See the reason above.'
                    : status === 'queued'
                      ? 'Queued. An agent runs one operation at a time; a disconnected agent runs it when it reconnects.'
                      : 'Each resource appears here when the agent reports it.'}
                </Empty>
              </div>
            }
          />
        </section>
      </div>
    </ItemPage>
  );
}

/** Why an operation ended without success. */
function Notice({ operation }: { readonly operation: Operation }) {
  const { error, status, plan_id } = operation;
  if (endedStale(operation))
    return (
      <Callout tone="warn" title="The plan is stale: nothing was changed">
        The machine, its desired state, or a secret has changed since the plan. Plan again to see the current changes.
        {plan_id !== null && <PlanTime id={plan_id} />}
      </Callout>
    );
  return (
    error !== null && (
      <Callout tone={status === 'failed' || status === 'interrupted' ? 'bad' : 'warn'} title={reasonTitle[status]}>
        <Text text={operationErrorText(error)} maxLength={600} />
      </Callout>
    )
  );
}

const reasonTitle: Record<Operation['status'], string> = {
  queued: 'Queued',
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  cancelled: 'Canceled',
  interrupted: 'Interrupted: the outcome is unknown',
  expired: 'Expired: the agent did not connect in time',
};

/** Reports whether the operation was queued so long that its start is worth showing. Times are in seconds. */
const hasWaited = ({ created_at, started_at }: Operation): boolean =>
  started_at !== null && started_at > created_at + 1;

function Took({ operation: { started_at, finished_at } }: { readonly operation: Operation }) {
  if (started_at === null || finished_at === null) return <span className="text-muted">never started</span>;
  return (
    <span className="tabular">
      {durationText((finished_at - started_at) * 1000) || '<1s'}
      <span className="text-muted">
        , ended <Time at={finished_at} />
      </span>
    </span>
  );
}

/** Shows the number of finished resources and the total. Only a plan specifies how many resources will be removed. */
function Progress({ operation: { status, resources, plan_id, summary } }: { readonly operation: Operation }) {
  const { data: plan } = useQuery({ ...operationQuery(plan_id ?? ''), enabled: plan_id !== null });
  const done = resources.length;
  const total = Math.max(plan?.summary.total ?? summary.total, done);
  if (status === 'queued')
    return (
      <p role="status" className="mt-4 text-muted text-xs">
        Queued.
      </p>
    );
  return (
    <div className="mt-4" role="status">
      {total > 0 && <ProgressBar label="Finished resources" max={total} value={done} className="mb-1" />}
      <p className="tabular text-muted text-xs">{`${done} of ${total} resources done.`}</p>
    </div>
  );
}

function Actions({ operation }: { readonly operation: Operation }) {
  const { operation_id, node_id, modules, kind, status } = operation;
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<'cancel' | 'apply' | null>(null);
  const { data: agent } = useQuery({ ...agentQuery(node_id), enabled: dialog === 'apply' });
  const loadModules = async () => (await loadUnassignedModules([{ node_id, modules }])).get(node_id) ?? [];
  const again = useMutation({
    mutationFn: async () => startPlan({ node_id, modules: await loadModules() }),
    onSuccess: ({ operation_id }) =>
      void navigate({ to: '/operations/$operation', params: { operation: operation_id } }),
  });
  const changes = operation.summary.changed + operation.summary.removed;
  return (
    <>
      {!hasEnded(status) && (
        <Button look="danger" icon={<Ban className="size-4" />} onClick={() => setDialog('cancel')}>
          Cancel
        </Button>
      )}
      {hasEnded(status) && kind === 'plan' && (
        <Button icon={<RotateCcw className="size-4" />} busy={again.isPending} onClick={() => again.mutate()}>
          Plan again
        </Button>
      )}
      {kind === 'plan' && status === 'succeeded' && changes > 0 && (
        <Button look="primary" icon={<Play className="size-4" />} onClick={() => setDialog('apply')}>
          Apply this plan…
        </Button>
      )}
      {hasEnded(status) && status !== 'succeeded' && kind === 'apply' && (
        <Button look="primary" icon={<RotateCcw className="size-4" />} onClick={() => setDialog('apply')}>
          Apply again…
        </Button>
      )}
      {again.isError && (
        <div className="basis-full">
          <Problem error={again.error} />
        </div>
      )}
      <Confirm
        open={dialog === 'cancel'}
        onOpenChange={(open) => !open && setDialog(null)}
        title={`Cancel this ${kind}?`}
        action={`Cancel ${kind}`}
        onConfirm={() => cancel(operation_id)}
      >
        {status === 'queued'
          ? 'It has not started. Nothing will be changed.'
          : 'The agent stops after its current resource and keeps the changes made so far.'}
      </Confirm>
      {dialog === 'apply' && agent !== undefined && (
        <ApplyAgentDialog
          agent={agent}
          title={kind === 'plan' ? 'Apply this plan' : 'Apply again'}
          loadModules={loadModules}
          {...(kind === 'plan' ? { given: operation } : {})}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  );
}
