import { useMutation, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { type DraftText, operationQuery, startApply, startPlan } from '../../api/operations.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Picker } from '../../parts/form/picker.tsx';
import { Panel } from '../../parts/panel.tsx';
import { ResourceResults } from '../../parts/resource/resource-results.tsx';
import { Loading, PanelSkeleton } from '../../parts/skeletons.tsx';
import { Empty, Failure, Problem, SkeletonRows } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { hasEnded, StatusBadge } from '../../parts/work-status.tsx';
import { AgentLink, OperationLink } from '../links.tsx';
import { agentOptions } from './agent-options.ts';
import { agentsOf } from './rollout.ts';
import { useAssignmentsOf } from './use-assignments-of.ts';

interface TryProps {
  /** Null if the text has no name. */
  readonly name: string | null;
  /** The text with unsaved changes; null if there are none. */
  readonly draft: DraftText | null;
  /** Why the text cannot be planned; null if it can. */
  readonly fault: string | null;
  readonly onSave: () => void;
}

/** Plans a module, including its unsaved changes, on one agent. After the changes are saved, applies exactly that plan. */
export function TryTab({ name, draft, fault, onSave }: TryProps) {
  const agents = useQuery(agentsQuery);
  const users = useAssignmentsOf(name ?? '');
  const [picked, setAgent] = useUrlState<string>('agent', '');
  // By default, plans on an agent that the module is assigned to.
  const [assigned] = useMemo(
    () => agentsOf(users, agents.data ?? []).filter(({ connected }) => connected),
    [users, agents.data],
  );
  const agent = picked || (assigned?.node_id ?? '');
  const [operation, setOperation] = useUrlState<string>('plan', '');
  const options = useMemo(() => agentOptions(agents.data ?? []), [agents.data]);
  const agentName = options.find(({ value }) => value === agent)?.label;
  const plan = useMutation({
    mutationFn: () =>
      startPlan({ node_id: agent, ...(draft === null ? { modules: [name ?? ''] } : { modules: [], draft }) }),
    onSuccess: ({ operation_id }) => setOperation(operation_id),
  });
  return (
    <div className="space-y-4">
      <Panel>
        <form
          className="flex flex-wrap items-end gap-3"
          onSubmit={(event) => {
            event.preventDefault();
            if (agent === '') return;
            if (fault === null) plan.mutate();
            else notify(fault);
          }}
        >
          <div className="w-80 max-sm:w-full">
            <Picker
              label="Agent"
              placeholder="Type part of a name"
              none="No matching approved agent"
              options={options}
              value={agent}
              onPick={setAgent}
            />
          </div>
          <Button type="submit" look="primary" busy={plan.isPending} disabled={agent === ''}>
            Plan{agentName !== undefined && ` on ${agentName}`}
          </Button>
          <p className="min-w-0 basis-full text-muted text-sm">
            A plan changes nothing. It shows what an apply of this module, together with the agent’s assignments, would
            change.{draft !== null && ' It uses the text in the editor, without saving it.'}
          </p>
        </form>
        {plan.isError && (
          <div className="mt-3">
            <Problem error={plan.error} />
          </div>
        )}
      </Panel>
      {operation !== '' && (
        <PlanResult key={operation} id={operation} name={name} onSave={draft === null ? null : onSave} />
      )}
    </div>
  );
}

function PlanResult({
  id,
  name,
  onSave,
}: {
  readonly id: string;
  readonly name: string | null;
  /** Saves the module, which must precede the apply; null if it is already saved. */
  readonly onSave: (() => void) | null;
}) {
  const query = useQuery(operationQuery(id));
  const [asking, setAsking] = useState(false);
  const [applied, setApplied] = useState<string | null>(null);
  if (query.isPending)
    return (
      <Loading label="Loading the plan">
        <PanelSkeleton rows={4} size="line" />
      </Loading>
    );
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  const { node_id, status, summary, error, resources, created_at, kind } = query.data;
  // Results for this module come first, then those for the agent's other modules.
  const ofThis = resources.filter(({ module }) => module === name);
  const sorted = [...ofThis, ...resources.filter(({ module }) => module !== name)];
  const others = resources.length - ofThis.length;
  return (
    <Panel
      flush
      title={
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <span>
            Plan on <AgentLink id={node_id} />
          </span>
          <StatusBadge status={status} />
          <span className="font-normal text-muted text-xs">
            <Time at={created_at} /> · <OperationLink id={id}>show operation</OperationLink>
          </span>
        </span>
      }
      actions={
        status === 'succeeded' &&
        kind === 'plan' &&
        applied === null &&
        (onSave === null ? (
          <Button look="primary" onClick={() => setAsking(true)}>
            Apply this plan…
          </Button>
        ) : (
          <Button onClick={onSave}>Save to apply it</Button>
        ))
      }
    >
      <div className="space-y-3 p-4">
        <p>
          <SummaryLine summary={summary} resultKind="plan" />
        </p>
        {error !== null && <Problem error={new Error(error)} />}
        {applied !== null && <Applied id={applied} />}
        <ResourceResults
          results={sorted}
          resultKind="plan"
          running={!hasEnded(status)}
          empty={
            hasEnded(status) ? (
              error === null && (
                <Empty title="No resources for this agent">
                  No entry under <code className="font-mono text-xs">supports</code> matches it.
                </Empty>
              )
            ) : (
              <SkeletonRows rows={3} label="The agent is planning" />
            )
          }
        />
        {others > 0 && (
          <p className="text-muted text-xs">
            {others} of these {others === 1 ? 'belongs' : 'belong'} to other modules that are assigned to this agent or
            were applied earlier.
          </p>
        )}
      </div>
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        danger={false}
        title="Apply this plan?"
        action="Apply"
        onConfirm={async () => {
          // Names no modules, because the plan determines them.
          const { operation_id } = await startApply({ node_id, modules: [], plan_id: id });
          setApplied(operation_id);
        }}
      >
        This applies exactly the changes of this plan to <AgentLink id={node_id} />. If the machine, its desired state,
        or a secret has changed since the plan, the apply is refused.
      </Confirm>
    </Panel>
  );
}

function Applied({ id }: { readonly id: string }) {
  const { data } = useQuery(operationQuery(id));
  return (
    <p role="status" className="flex flex-wrap items-center gap-3 rounded-md bg-raised px-3 py-2 text-sm">
      <OperationLink id={id}>Applied</OperationLink>
      {data !== undefined && (
        <>
          <StatusBadge status={data.status} />
          <SummaryLine summary={data.summary} resultKind="apply" />
        </>
      )}
    </p>
  );
}
