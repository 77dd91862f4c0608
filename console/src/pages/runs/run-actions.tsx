import type { Run } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Ban, Play, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { cancelWholeRun, type RunTerms } from '../../api/runs.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Checkbox } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { hasEnded } from '../../parts/work-status.tsx';
import { ApplyRunDialog } from '../apply/apply-run-dialog.tsx';
import { type RunSubject, startRunOf } from '../apply/run-subject.ts';
import { countsOf, type Outcome, outcomeOfResult, type RunResult } from './run-groups.ts';

type RunDialog = 'cancel' | 'apply' | 'retry' | null;

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
  const subject: RunSubject =
    assignment === null
      ? { kind: 'agents', node_ids: results.map(({ node_id }) => node_id), modules }
      : { kind: 'assignment', name: assignment };
  const planAgain = useMutation({
    mutationFn: () => startRunOf(subject, 'plan'),
    onSuccess: goTo,
  });
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
      {ended && kind === 'plan' && counts.changed + counts.removes > 0 && (
        <Button look="primary" icon={<Play className="size-4" />} onClick={() => setDialog('apply')}>
          Apply this plan…
        </Button>
      )}
      {ended && kind === 'apply' && incomplete > 0 && (
        <Button look="primary" icon={<RotateCcw className="size-4" />} onClick={() => setDialog('retry')}>
          {counts.failed > 0 ? 'Retry failed agents…' : 'Apply to remaining agents…'}
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
        action="Cancel run"
        onConfirm={() => cancelWholeRun(run.run_id)}
      >
        {counts.waiting > 0 && <>Waiting agents are skipped. </>}
        Running agents stop after their current resource and keep the changes made so far.
      </Confirm>
      {dialog === 'apply' && (
        <ApplyRunDialog
          title="Apply this plan"
          loadSubjects={async () => [subject]}
          given={{ subject, run }}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === 'retry' && <Retry run={run} modules={modules} onClose={() => setDialog(null)} />}
    </>
  );
}

/** Plans on all agents that did not succeed, then applies to the failed ones or to all of them. */
function Retry({
  run: { results },
  modules,
  onClose,
}: {
  readonly run: Run;
  readonly modules: readonly string[];
  readonly onClose: () => void;
}) {
  // The agents when the dialog opened. A run that was canceled may still change.
  const [{ failed, left }] = useState(() => ({
    failed: idsOf(results, ['failed']),
    left: idsOf(results, ['untried', 'cancelled']),
  }));
  const [withRest, setWithRest] = useState(failed.size === 0);
  return (
    <ApplyRunDialog
      title={failed.size > 0 ? 'Retry failed agents' : 'Apply to remaining agents'}
      description="Starts a new run on these agents with their current desired state."
      loadSubjects={async () => [{ kind: 'agents', node_ids: [...failed, ...left], modules }]}
      choice={{
        includes: ({ node_id }) => failed.has(node_id) || withRest,
        field: failed.size > 0 && left.size > 0 && (
          <Checkbox
            label={`Include the ${left.size} that ${left.size === 1 ? 'was' : 'were'} skipped or canceled`}
            checked={withRest}
            onChange={(event) => setWithRest(event.target.checked)}
          />
        ),
      }}
      onClose={onClose}
    />
  );
}

const idsOf = (results: readonly RunResult[], outcomes: readonly Outcome[]): ReadonlySet<string> =>
  new Set(results.filter((result) => outcomes.includes(outcomeOfResult(result))).map(({ node_id }) => node_id));
