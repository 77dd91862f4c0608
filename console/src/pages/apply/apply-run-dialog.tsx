import { ApiError } from '@muster/protocol/client';
import type { Run } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { mayHaveHappened } from '../../api/client.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { countedText } from '../../parts/count.ts';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { atOnce, careful, type FanOutDraft, readFanOut, sentences } from '../../parts/form/fan-out.ts';
import { FanOutForm } from '../../parts/form/fan-out-form.tsx';
import type { ModuleNote } from '../../parts/resource/resource-results.tsx';
import { Problem } from '../../parts/states.tsx';
import { ListLink, RunLink } from '../links.tsx';
import { outcomeOfResult, type RunResult } from '../runs/run-groups.ts';
import { ExactChoice } from './exact-choice.tsx';
import { applyLabel } from './plan-words.ts';
import { PlannedAgents } from './planned-agents.tsx';
import { totalsOf } from './planned-totals.ts';
import { RemovalCheck, useConfirmedRemovals } from './removal-check.tsx';
import { limitedTo, type RunSubject, startRunOf } from './run-subject.ts';
import { type PlannedSubject, useRunPlans } from './use-run-plans.ts';

/** The subset of the planned agents on which to apply. */
export interface AgentChoice {
  readonly field: ReactNode;
  readonly includes: (result: RunResult) => boolean;
}

interface ApplyRunProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly loadSubjects: () => Promise<readonly RunSubject[]>;
  /** The plan to apply. By default, the dialog requests a plan when it opens. */
  readonly given?: { readonly subject: RunSubject; readonly run: Run } | null;
  readonly choice?: AgentChoice;
  /** Returns a note to show next to the name of a module, or null. */
  readonly moduleNote?: ModuleNote;
  readonly onClose: () => void;
}

/** A run that was started before a later one was refused. The next attempt skips its agents. */
interface StartedRun {
  readonly run_id: string;
  readonly node_ids: readonly string[];
}

/** Returns the runs to start. Limits each run to the agents to which it can apply. */
function targetsOf(plans: readonly PlannedSubject[], results: readonly RunResult[], isExact: boolean) {
  const usable = new Set(
    results.filter(({ status }) => !isExact || status === 'succeeded').map(({ node_id }) => node_id),
  );
  return plans.flatMap(({ subject, run }) => {
    const limited = limitedTo(subject, (id) => usable.has(id));
    if (limited === null || run === null) return [];
    const count = limited.kind === 'assignment' ? run.results.length : limited.node_ids.length;
    return [{ subject: limited, plan_run_id: run.run_id, count }];
  });
}

/** Plans the changes on the agents, and returns the plan with functions to apply it. */
function useApplyRun({ loadSubjects, given = null, choice, onClose }: ApplyRunProps) {
  const navigate = useNavigate();
  const [isExact, setExact] = useState(true);
  const [started, setStarted] = useState<readonly StartedRun[]>([]);
  const startedAgents = new Set(started.flatMap(({ node_ids }) => node_ids));
  const loadLeft = async () =>
    (await loadSubjects()).flatMap((subject) => limitedTo(subject, (id) => !startedAgents.has(id)) ?? []);
  const { plans, isPlanned, error, again, abandon } = useRunPlans(loadLeft, given);
  const results = plans
    .flatMap(({ run }) => run?.results ?? [])
    .filter((result) => !startedAgents.has(result.node_id) && (choice?.includes(result) ?? true));
  const totals = totalsOf(results);
  const removals = results
    .filter((result) => outcomeOfResult(result) === 'removes')
    .map(({ node_id, operation_id }) => `${node_id} ${operation_id} ${isExact ? 'exact' : ''}`);
  const { isConfirmed, setConfirmed } = useConfirmedRemovals(removals);
  const coversAll = !isExact || plans.some(({ subject }) => subject.kind === 'assignment');
  const targets = targetsOf(plans, results, isExact);
  /** Number of agents to apply to. */
  const count = targets.reduce((sum, target) => sum + target.count, 0);
  const options = useFanOutDraft(targets.map((target) => target.count));
  const apply = useMutation({
    mutationFn: async () => {
      if ('faults' in options.read) throw new Error('Correct the options above.');
      const all = [...started];
      try {
        for (const { subject, plan_run_id } of targets) {
          const bound = isExact ? { offline: 'report' as const, ttl: undefined, plan_run_id } : {};
          const { run_id } = await startRunOf(subject, 'apply', { ...options.read.options, ...bound });
          all.push({ run_id, node_ids: subject.kind === 'agents' ? subject.node_ids : [] });
        }
      } catch (error) {
        setStarted(all);
        throw error;
      }
      return all;
    },
    onSuccess: ([first, ...others]) => {
      onClose();
      if (first === undefined) return;
      void (others.length === 0
        ? navigate({ to: '/runs/$run', params: { run: first.run_id } })
        : navigate({ to: '/runs' }));
    },
  });
  const isGone = apply.error instanceof ApiError && apply.error.problem.code === 'run_not_found';
  const isUnknown = mayHaveHappened(apply.error);
  const needsPlan = error !== null || isUnknown || (isPlanned && isExact && (isGone || count === 0));
  return {
    ...{ started, results, totals, count, coversAll, isPlanned, error, apply, isGone, isUnknown, needsPlan, options },
    ...{ isExact, setExact, isConfirmed, setConfirmed },
    isReady: isPlanned && !needsPlan && isConfirmed,
    planAgain: () => {
      apply.reset();
      setExact(true);
      again();
    },
    close: () => {
      abandon();
      onClose();
    },
  };
}

type ApplyRunState = ReturnType<typeof useApplyRun>;

/**
 * Applies to several agents: plans immediately, shows the changes, and after confirmation starts a run that applies
 * exactly these changes.
 */
export function ApplyRunDialog(props: ApplyRunProps) {
  const { title, description, given = null, choice, moduleNote } = props;
  const state = useApplyRun(props);
  const { started, results, totals, isPlanned, error, apply, isGone, isUnknown, close } = state;
  return (
    <Dialog
      open
      wide
      onOpenChange={(open) => !open && close()}
      title={title}
      {...(description === undefined ? {} : { description })}
      footer={
        <>
          {isPlanned && <Pace state={state} />}
          <Button onClick={close}>Cancel</Button>
          {state.needsPlan ? (
            <Button look="primary" onClick={state.planAgain}>
              Plan again
            </Button>
          ) : (
            <Button
              look={totals.removed > 0 ? 'remove' : 'primary'}
              busy={apply.isPending}
              disabled={!state.isReady}
              onClick={state.options.checked(apply.mutate)}
            >
              {!isPlanned ? 'Apply' : totals.unplanned === results.length ? 'Apply without a plan' : applyLabel(totals)}
            </Button>
          )}
        </>
      }
    >
      <div className="space-y-4">
        {choice?.field}
        {started.length > 0 && <StartedRuns runs={started} />}
        {isGone && (
          <Callout
            tone="warn"
            title={`The plan was deleted. ${started.length === 0 ? 'Nothing' : 'Nothing else'} was applied`}
          >
            The orchestrator keeps plans for a limited time.
          </Callout>
        )}
        {isUnknown && (
          <Callout tone="warn" title="The run may have started">
            No response arrived. Look at the <ListLink to="/runs">runs</ListLink> before you plan again.
          </Callout>
        )}
        {error === null && <PlannedAgents {...{ results, totals, isPlanned, moduleNote }} />}
        {isPlanned && <Choices state={state} hasExact={given === null} />}
        <Problem error={error ?? (isGone || isUnknown ? null : apply.error)} />
      </div>
    </Dialog>
  );
}

function StartedRuns({ runs }: { readonly runs: readonly StartedRun[] }) {
  return (
    <Callout tone="warn" title={`Only ${countedText(runs.length, 'run')} started`}>
      <span className="flex flex-wrap gap-x-2">
        {runs.map(({ run_id }) => (
          <RunLink key={run_id} id={run_id} />
        ))}
      </span>
      Another attempt does not include their agents.
    </Callout>
  );
}

/**
 * Asks the operator to confirm removals, to choose whether the run is bound to the plan, and to choose the rollout
 * options.
 */
function Choices({
  state: { totals, count, coversAll, options, isExact, setExact, isConfirmed, setConfirmed },
  hasExact,
}: {
  readonly state: ApplyRunState;
  readonly hasExact: boolean;
}) {
  return (
    <>
      {totals.unplanned > 0 && <Unplanned count={totals.unplanned} isSkipped={!coversAll} />}
      <RemovalCheck
        count={totals.removed}
        agents={totals.removedAgents}
        checked={isConfirmed}
        onChange={setConfirmed}
      />
      {hasExact && <ExactChoice isExact={isExact} onChange={setExact} />}
      {count > 0 && hasWork({ totals, isExact }) && (
        <FanOutForm
          draft={options.draft}
          onChange={options.setDraft}
          faults={options.faults}
          hasPace={options.hasPace}
          hasOffline={!isExact}
        />
      )}
    </>
  );
}

/**
 * Manages the rollout options. A run on one agent has none.
 * @param counts number of agents of each run
 */
function useFanOutDraft(counts: readonly number[]) {
  const [edited, setDraft] = useState<FanOutDraft | null>(null);
  const [isTried, setTried] = useState(false);
  const hasPace = counts.some((count) => count > 1);
  const draft = edited ?? (hasPace ? careful : atOnce);
  const read = readFanOut(draft);
  return {
    ...{ draft, setDraft, read, counts, hasPace },
    faults: 'faults' in read && isTried ? read.faults : {},
    /** Returns a function that calls `act` if the options are valid, and otherwise shows the errors. */
    checked: (act: () => void) => () => {
      setTried(true);
      if ('options' in read) act();
    },
  };
}

/** Reports whether an apply would do anything. If not, it needs no canary. */
const hasWork = ({ totals, isExact }: Pick<ApplyRunState, 'totals' | 'isExact'>): boolean =>
  totals.changed + totals.removed + totals.unplanned > 0 || !isExact;

/** Describes the rollout next to the button that starts it, where it is visible however long the list of changes is. */
function Pace({ state }: { readonly state: ApplyRunState }) {
  const { count, isExact, options, needsPlan } = state;
  const { read, counts, hasPace } = options;
  if (needsPlan || count === 0 || !hasWork(state) || (!hasPace && counts.length < 2)) return null;
  const lines =
    'options' in read
      ? sentences(isExact ? { ...read.options, offline: undefined } : read.options, counts)
      : ['Correct the options above.'];
  return (
    <div
      aria-live="polite"
      className="min-w-0 space-y-1 self-center text-muted text-sm max-sm:min-w-full sm:mr-auto sm:flex-1"
    >
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

function Unplanned({ count, isSkipped }: { readonly count: number; readonly isSkipped: boolean }) {
  return (
    <p className="text-sm text-warn">
      {countedText(count, 'agent')} {count === 1 ? 'has' : 'have'} no plan, for example because{' '}
      {count === 1 ? 'it is' : 'they are'} offline.{' '}
      {isSkipped
        ? `${count === 1 ? 'It is' : 'They are'} skipped. To include ${count === 1 ? 'it' : 'them'}, clear “Apply exactly this plan”.`
        : `${count === 1 ? 'It counts' : 'They count'} as failed unless ${count === 1 ? 'it is' : 'they are'} queued.`}
    </p>
  );
}
