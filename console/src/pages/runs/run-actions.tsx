import type { Run } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Ban, Play, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { cancelWholeRun, type RunTerms, runAssignment, runOnAgents } from '../../api/runs.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { atOnce, type FanOut } from '../../parts/form/fan-out.ts';
import { FanOutDialog } from '../../parts/form/fan-out-form.tsx';
import { Checkbox } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { hasEnded } from '../../parts/work-status.tsx';
import { countsOf, outcomeOfResult } from './run-groups.ts';

type RunDialog = 'cancel' | 'apply' | 'retry' | null;

const agentsText = (count: number): string => (count === 1 ? '1 agent' : `${count} agents`);

/** Buttons that approve a run's plan, cancel the run, or retry its failed agents. */
export function RunActions({ run, terms }: { readonly run: Run; readonly terms: RunTerms | null }) {
  const { kind, status, results, assignment } = run;
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<RunDialog>(null);
  const counts = countsOf(results);
  const ended = hasEnded(status) && run.finished_at !== null;
  const incomplete = counts.failed + counts.untried + counts.cancelled;
  const goTo = (to: Run) => void navigate({ to: '/runs/$run', params: { run: to.run_id } });
  const close = (open: boolean) => !open && setDialog(null);
  const modules = terms?.modules ?? [];
  const planAgain = useMutation({
    mutationFn: () =>
      assignment === null
        ? runOnAgents({ kind: 'plan', node_ids: results.map(({ node_id }) => node_id), modules })
        : runAssignment(assignment, 'plan'),
    onSuccess: goTo,
  });
  const applyPlan = (options: FanOut) =>
    (assignment === null
      ? runOnAgents({
          ...options,
          kind: 'apply',
          node_ids: results.map(({ node_id }) => node_id),
          modules,
          plan_run_id: run.run_id,
        })
      : runAssignment(assignment, 'apply', { ...options, plan_run_id: run.run_id })
    ).then(goTo);
  return (
    <>
      {status === 'running' && (
        <Button look="danger" icon={<Ban className="size-4" />} onClick={() => setDialog('cancel')}>
          Cancel
        </Button>
      )}
      {ended && kind === 'plan' && (
        <Button icon={<RotateCcw className="size-4" />} busy={planAgain.isPending} onClick={() => planAgain.mutate()}>
          Plan again
        </Button>
      )}
      {ended && kind === 'plan' && counts.changed > 0 && (
        <Button look="primary" icon={<Play className="size-4" />} onClick={() => setDialog('apply')}>
          Approve and apply
        </Button>
      )}
      {ended && kind === 'apply' && incomplete > 0 && (
        <Button look="primary" icon={<RotateCcw className="size-4" />} onClick={() => setDialog('retry')}>
          {counts.failed > 0 ? 'Retry failed agents' : 'Run remaining agents'}
        </Button>
      )}
      {planAgain.isError && (
        <div className="basis-full">
          <Problem error={planAgain.error} />
        </div>
      )}
      <Confirm
        open={dialog === 'cancel'}
        onOpenChange={close}
        title="Cancel this run?"
        action="Cancel the run"
        onConfirm={() => cancelWholeRun(run.run_id)}
      >
        {counts.waiting > 0 && <>Waiting agents are skipped. </>}
        Running agents stop after their current resource and keep the changes made so far.
      </Confirm>
      {dialog === 'apply' && (
        <FanOutDialog
          open
          onOpenChange={close}
          title="Approve this plan and apply it"
          description={`${agentsText(counts.changed)} to change, ${counts.same} unchanged. Each agent applies exactly these changes, or none if anything has changed since the plan.`}
          action={`Apply to ${agentsText(results.length)}`}
          count={results.length}
          onStart={applyPlan}
        />
      )}
      {dialog === 'retry' && <Retry run={run} modules={modules} onClose={() => setDialog(null)} onStarted={goTo} />}
    </>
  );
}

/** Starts a new run on the agents that did not succeed. */
function Retry({
  run: { results, kind },
  modules,
  onClose,
  onStarted,
}: {
  readonly run: Run;
  readonly modules: readonly string[];
  readonly onClose: () => void;
  readonly onStarted: (run: Run) => void;
}) {
  const failed = results.filter((result) => outcomeOfResult(result) === 'failed');
  const left = results.filter((result) => ['untried', 'cancelled'].includes(outcomeOfResult(result)));
  const [withRest, setWithRest] = useState(failed.length === 0);
  const chosen = withRest ? [...failed, ...left] : failed;
  return (
    <FanOutDialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={failed.length > 0 ? 'Retry failed agents' : 'Run remaining agents'}
      description="Starts a new run on these agents with their current desired state."
      action={`Apply to ${agentsText(chosen.length)}`}
      count={chosen.length}
      ready={chosen.length > 0}
      {...(chosen.length === 1 ? { start: atOnce } : {})}
      onStart={(options) =>
        runOnAgents({ ...options, kind, node_ids: chosen.map(({ node_id }) => node_id), modules }).then(onStarted)
      }
    >
      {failed.length > 0 && left.length > 0 && (
        <Checkbox
          label={`Include the ${left.length} that ${left.length === 1 ? 'was' : 'were'} skipped or cancelled`}
          checked={withRest}
          onChange={(event) => setWithRest(event.target.checked)}
        />
      )}
    </FanOutDialog>
  );
}
