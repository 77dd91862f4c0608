import { ApiError } from '@muster/protocol/client';
import type { Operation } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { Ban, Play, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { loadUnassignedModules } from '../../api/modules/unassigned-modules.ts';
import { cancel, operationQuery, outputQuery, startApply, startPlan } from '../../api/operations.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Id } from '../../parts/copy.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { ResourceResults } from '../../parts/resource/resource-results.tsx';
import { durationText } from '../../parts/resource/resource-row.tsx';
import { Empty, Failure, Problem, Skeleton, SkeletonRows } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { hasEnded, StatusBadge } from '../../parts/work-status.tsx';
import { AgentLink, ModuleLinks, OperationLink, OperatorName, RunLink } from '../links.tsx';

export function OperationPage() {
  const { operation: id } = useParams({ strict: false }) as { operation: string };
  const query = useQuery(operationQuery(id));
  if (query.isPending)
    return (
      <Page title="Operation">
        <Skeleton className="mb-4 h-24 w-full rounded-lg" />
        <SkeletonRows />
      </Page>
    );
  if (query.isError)
    return (
      <Page title="Operation">
        <Failure error={query.error} retry={() => void query.refetch()} title="This operation could not be loaded" />
      </Page>
    );
  return <OperationDetails key={id} operation={query.data} />;
}

function OperationDetails({ operation }: { readonly operation: Operation }) {
  const { kind, status, node_id } = operation;
  const ended = hasEnded(status);
  const { data: output } = useQuery(outputQuery(operation));
  const verb = kind === 'plan' ? 'Plan' : 'Apply';
  return (
    <Page
      name={`${verb} …${operation.operation_id.slice(-5)}`}
      title={
        <span className="flex min-w-0 items-center gap-2.5">
          <span className="flex min-w-0 gap-1.5">
            {verb} on <AgentLink id={node_id} />
          </span>
          <StatusBadge status={status} />
        </span>
      }
      actions={<Actions operation={operation} />}
    >
      <div className="space-y-4">
        {isStale(operation) && (
          <Callout tone="warn" title="The plan is stale: nothing was changed">
            The machine, its desired state, or a secret has changed since the plan. Plan again to see the current
            changes.
          </Callout>
        )}
        {operation.error !== null && !isStale(operation) && (
          <Callout tone={status === 'failed' || status === 'interrupted' ? 'bad' : 'warn'} title={reasonTitle[status]}>
            <Text text={operation.error} maxLength={600} />
          </Callout>
        )}
        <Panel>
          <Facts
            facts={[
              ['Result', <SummaryLine key="s" wrap summary={operation.summary} resultKind={kind} />],
              ['Modules', <ModuleLinks key="m" modules={operation.modules} />],
              ['Requested by', <OperatorName key="o" id={operation.requested_by} />],
              ['Requested', <Time key="c" at={operation.created_at} />],
              operation.started_at === null ? null : ['Started', <Time key="t" at={operation.started_at} />],
              operation.finished_at === null ? null : ['Ended', <Took key="f" operation={operation} />],
              operation.run_id === null ? null : ['Part of run', <RunLink key="r" id={operation.run_id} />],
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
    </Page>
  );
}

/** Reports whether the operation is an apply that was refused because its plan was stale. */
const isStale = ({ plan_id, status, error }: Operation): boolean =>
  plan_id !== null && status === 'failed' && error?.startsWith('plan_stale') === true;

const reasonTitle: Record<Operation['status'], string> = {
  queued: 'Queued',
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  cancelled: 'Cancelled',
  interrupted: 'Interrupted: the outcome is unknown',
  expired: 'Expired: the agent did not connect in time',
};

function Took({ operation: { started_at, finished_at } }: { readonly operation: Operation }) {
  const ms = started_at === null || finished_at === null ? 0 : (finished_at - started_at) * 1000;
  return (
    <>
      <Time at={finished_at} />
      {ms > 0 && <span className="text-muted"> after {durationText(ms)}</span>}
    </>
  );
}

/** Shows the number of finished resources. The total is unknown until the operation has finished. */
function Progress({ operation: { status, resources } }: { readonly operation: Operation }) {
  return (
    <div className="mt-4" role="status">
      <div className="h-1.5 overflow-hidden rounded-full bg-raised">
        <div className={status === 'running' ? 'h-full w-full animate-pulse bg-info' : 'h-full w-0'} />
      </div>
      <p className="mt-1 text-muted text-xs">
        {status === 'queued' ? 'Queued.' : `${resources.length} resources done.`}
      </p>
    </div>
  );
}

function Actions({ operation }: { readonly operation: Operation }) {
  const { operation_id, node_id, modules, kind, status } = operation;
  const navigate = useNavigate();
  const [cancelling, setCancelling] = useState(false);
  const [applying, setApplying] = useState(false);
  const goTo = (to: Operation) =>
    void navigate({ to: '/operations/$operation', params: { operation: to.operation_id } });
  const plans = kind === 'plan' || isStale(operation);
  const again = useMutation({
    mutationFn: async () => {
      const beyond = await loadUnassignedModules([{ node_id, modules }]);
      return (plans ? startPlan : startApply)({ node_id, modules: beyond.get(node_id) ?? [] });
    },
    onSuccess: goTo,
  });
  const changes = operation.summary.changed + operation.summary.removed;
  return (
    <>
      {!hasEnded(status) && (
        <Button look="danger" icon={<Ban className="size-4" />} onClick={() => setCancelling(true)}>
          Cancel
        </Button>
      )}
      {kind === 'plan' && status === 'succeeded' && changes > 0 && (
        <Button look="primary" icon={<Play className="size-4" />} onClick={() => setApplying(true)}>
          Apply this plan
        </Button>
      )}
      {hasEnded(status) && (status !== 'succeeded' || kind === 'plan') && (
        <Button icon={<RotateCcw className="size-4" />} busy={again.isPending} onClick={() => again.mutate()}>
          {plans ? 'Plan again' : 'Try again'}
        </Button>
      )}
      {again.isError && (
        <div className="basis-full">
          <Problem error={again.error} />
        </div>
      )}
      <Confirm
        open={cancelling}
        onOpenChange={setCancelling}
        title={`Cancel this ${kind}?`}
        action={`Cancel the ${kind}`}
        onConfirm={() => cancel(operation_id)}
      >
        {status === 'queued'
          ? 'It has not started. Nothing will be changed.'
          : 'The agent stops after its current resource and keeps the changes made so far.'}
      </Confirm>
      <ApplyPlan
        key={String(applying)}
        open={applying}
        onOpenChange={setApplying}
        operation={operation}
        onStarted={goTo}
        onPlanAgain={() => again.mutate()}
      />
    </>
  );
}

/**
 * Applies exactly this plan. If the plan is stale, the orchestrator refuses the apply and the dialog offers to plan
 * again.
 */
function ApplyPlan({
  open,
  onOpenChange,
  operation,
  onStarted,
  onPlanAgain,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly operation: Operation;
  readonly onStarted: (operation: Operation) => void;
  readonly onPlanAgain: () => void;
}) {
  const { node_id, operation_id, summary } = operation;
  const [stale, setStale] = useState(false);
  return (
    <Confirm
      open={open}
      onOpenChange={onOpenChange}
      danger={false}
      title={stale ? 'This plan is stale' : 'Apply this plan?'}
      action={stale ? 'Plan again' : 'Apply'}
      onConfirm={async () => {
        if (stale) return onPlanAgain();
        try {
          onStarted(await startApply({ node_id, modules: [], plan_id: operation_id }));
        } catch (error) {
          if (error instanceof ApiError && error.problem.code === 'plan_stale') setStale(true);
          throw error;
        }
      }}
    >
      {stale ? (
        'The machine, its desired state, or a secret has changed since the plan. Nothing was applied. Plan again to see the current changes.'
      ) : (
        <>
          {summary.changed > 0 && <>{summary.changed} to change. </>}
          {summary.removed > 0 && <>{summary.removed} to remove. </>}
          The agent applies exactly these changes, or none if anything has changed since the plan.
        </>
      )}
    </Confirm>
  );
}
