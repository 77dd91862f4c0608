import { ApiError } from '@muster/protocol/client';
import type { Agent, Operation } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { statusText } from '../../../../client/src/status-text.ts';
import { startApply } from '../../api/operations.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Checkbox } from '../../parts/form/field.tsx';
import { ProgressBar } from '../../parts/progress-bar.tsx';
import { messageOf, PlannedAt, Problem, Skeleton } from '../../parts/states.tsx';
import { hasEnded } from '../../parts/work-status.tsx';
import { ExactChoice } from './exact-choice.tsx';
import { applyLabel } from './plan-words.ts';
import { PlannedChanges } from './planned-changes.tsx';
import { QueueApplyDialog } from './queue-apply-dialog.tsx';
import { RemovalCheck, useConfirmedRemovals } from './removal-check.tsx';
import { useAgentPlan } from './use-agent-plan.ts';

export type ApplyTarget = Pick<Agent, 'node_id' | 'connected'>;

interface ApplyAgentProps {
  readonly agent: ApplyTarget;
  readonly title: string;
  /** Returns the modules to apply in addition to those from assignments; none by default. */
  readonly loadModules?: () => Promise<readonly string[]>;
  /** The plan to apply. By default, the dialog requests a plan when it opens. */
  readonly given?: Operation;
  readonly onClose: () => void;
}

const noModules = async (): Promise<readonly string[]> => [];

/**
 * Applies to one agent: plans immediately, shows the changes, and after confirmation applies exactly these changes. For
 * an agent that is offline, offers to queue the apply instead.
 */
export function ApplyAgentDialog(props: ApplyAgentProps) {
  const { agent, title, loadModules = noModules, onClose } = props;
  const [plans, setPlans] = useState(agent.connected);
  // Stays true after the agent disconnects, so that its plan remains visible.
  if (agent.connected && !plans) setPlans(true);
  return plans || props.given !== undefined ? (
    <PlanDialog {...props} loadModules={loadModules} />
  ) : (
    <QueueApplyDialog {...{ agent, title, loadModules, onClose }} />
  );
}

const lookOf = (plan: Operation | null) =>
  plan?.status === 'succeeded' && plan.summary.removed > 0 ? 'remove' : 'primary';

function PlanDialog({
  agent,
  title,
  loadModules,
  given,
  onClose,
}: ApplyAgentProps & { loadModules: () => Promise<readonly string[]> }) {
  const { node_id } = agent;
  const navigate = useNavigate();
  const { plan, modules, error, again, abandon } = useAgentPlan(node_id, loadModules, given ?? null);
  const [isExact, setExact] = useState(true);
  const planned = plan !== null && hasEnded(plan.status) ? plan : null;
  const isUsable = planned?.status === 'succeeded';
  const removals =
    planned === null || planned.summary.removed === 0 ? [] : [`${planned.operation_id} ${isExact ? 'exact' : ''}`];
  const { isConfirmed, setConfirmed } = useConfirmedRemovals(removals);
  const apply = useMutation({
    mutationFn: () =>
      startApply({ node_id, modules, ...(isExact && planned !== null ? { plan_id: planned.operation_id } : {}) }),
    onSuccess: ({ operation_id }) => {
      onClose();
      void navigate({ to: '/operations/$operation', params: { operation: operation_id } });
    },
  });
  const isPlanStale = apply.error instanceof ApiError && apply.error.problem.code === 'plan_stale';
  const planAgain = () => {
    apply.reset();
    setExact(true);
    again();
  };
  const close = () => {
    abandon();
    onClose();
  };
  const canApply = planned !== null && (isUsable ? isConfirmed : !isExact);
  return (
    <Dialog
      open
      wide
      onOpenChange={(open) => !open && close()}
      title={title}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          {(error !== null || isPlanStale || (planned !== null && !isUsable)) && (
            <Button look={isExact ? 'primary' : 'plain'} onClick={planAgain}>
              Plan again
            </Button>
          )}
          {error === null && !(isPlanStale && isExact) && (isUsable || planned === null || !isExact) && (
            <Button look={lookOf(planned)} busy={apply.isPending} disabled={!canApply} onClick={() => apply.mutate()}>
              {planned === null ? 'Apply' : isUsable ? applyLabel(planned.summary) : 'Apply without a plan'}
            </Button>
          )}
        </>
      }
    >
      <div className="space-y-4">
        {error !== null ? (
          <Problem error={error} />
        ) : planned === null ? (
          <Planning plan={plan} />
        ) : (
          <>
            {isPlanStale ? <StalePlan error={apply.error} /> : <Problem error={apply.error} />}
            {!isUsable && (
              <Problem error={new Error(planned.error ?? `The status of the plan is ${statusText(planned.status)}.`)} />
            )}
            <PlannedChanges plan={planned} />
            {isUsable && (
              <RemovalCheck
                count={planned.summary.removed}
                resources={planned.resources.filter(
                  ({ action, status }) => action === 'remove' && status === 'would_change',
                )}
                checked={isConfirmed}
                onChange={setConfirmed}
              />
            )}
            {given === undefined &&
              (isUsable ? (
                <ExactChoice isExact={isExact} onChange={setExact} />
              ) : (
                <Checkbox
                  label="Apply although there is no plan"
                  hint="The changes are unknown. They may include removals."
                  checked={!isExact}
                  onChange={(event) => setExact(!event.target.checked)}
                />
              ))}
          </>
        )}
      </div>
    </Dialog>
  );
}

const StalePlan = ({ error }: { readonly error: unknown }) => (
  <Callout tone="warn" title="The plan is stale. Nothing was applied">
    <p>{messageOf(error)}</p>
    <PlannedAt error={error} />
  </Callout>
);

function Planning({ plan }: { readonly plan: Operation | null }) {
  const total = plan?.summary.total ?? 0;
  const compared = plan?.resources.length ?? 0;
  return (
    <div role="status" className="space-y-3 text-sm">
      <p>
        {plan === null
          ? 'Starting to plan.'
          : plan.status === 'queued'
            ? 'Waiting for the agent to start planning.'
            : 'Planning.'}{' '}
        Nothing is changed yet.
        {total > 0 && (
          <span className="tabular text-muted">
            {' '}
            {compared} of {total} resources compared.
          </span>
        )}
      </p>
      {total > 0 && <ProgressBar label="Compared resources" max={total} value={compared} />}
      <Skeleton className="h-9 w-full rounded-md" />
      <Skeleton className="h-9 w-full rounded-md" />
    </div>
  );
}
