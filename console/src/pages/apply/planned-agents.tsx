import { ChevronRight } from 'lucide-react';
import { useMemo, useState } from 'react';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { countedText, countText } from '../../parts/count.ts';
import { ProgressBar } from '../../parts/progress-bar.tsx';
import type { ModuleNote } from '../../parts/resource/resource-results.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { RunChanges } from '../runs/run-changes.tsx';
import { byAgentName, countsOf, type Outcome, outcomeOfResult, type RunResult } from '../runs/run-groups.ts';
import { toneOf, wordOf } from '../runs/run-progress.tsx';
import { planText } from './plan-words.ts';
import type { PlannedTotals } from './planned-totals.ts';

/**
 * The changes that a plan would make on several agents: the progress, the totals, and the changes, grouped by agents
 * with the same changes. Their diffs are collapsed.
 */
export function PlannedAgents({
  results,
  totals,
  isPlanned,
  moduleNote,
}: {
  readonly results: readonly RunResult[];
  readonly totals: PlannedTotals;
  readonly isPlanned: boolean;
  readonly moduleNote?: ModuleNote | undefined;
}) {
  const [isOpen, setOpen] = useState(true);
  if (!isPlanned) return <Planning results={results} ended={totals.ended} />;
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
        <p className="tabular min-w-0 flex-1">
          {totals.changedAgents === 0 && totals.sameAgents > 0 ? (
            <>
              <strong className="font-medium">Nothing to change.</strong> {countedText(totals.sameAgents, 'agent')}{' '}
              already {totals.sameAgents === 1 ? 'matches' : 'match'}.
            </>
          ) : (
            <>
              <strong className="font-medium">{planText({ ...totals, unchanged: 0 })}</strong> on{' '}
              {countedText(totals.changedAgents, 'agent')}
              {totals.sameAgents > 0 && (
                <span className="text-muted">
                  , {totals.sameAgents} already {totals.sameAgents === 1 ? 'matches' : 'match'}
                </span>
              )}
            </>
          )}
        </p>
        {totals.ended > 0 && (
          <Button
            small
            look="quiet"
            aria-expanded={isOpen}
            icon={
              <ChevronRight
                aria-hidden="true"
                className={classNames('size-4 transition-transform duration-100', isOpen && 'rotate-90')}
              />
            }
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? 'Hide changes' : 'Show changes'}
          </Button>
        )}
      </div>
      {isOpen && totals.ended > 0 && <RunChanges folded results={results} kind="plan" moduleNote={moduleNote} />}
    </div>
  );
}

/** Agents that have no plan, those whose planning failed first. */
const unplanned: readonly Outcome[] = ['failed', 'cancelled', 'untried', 'running', 'waiting'];

/** Maximum number of agents to list. */
const maxListed = 6;

/** Shows how many agents are planned, which agents the dialog waits for, and for which agents planning failed. */
function Planning({ results, ended }: { readonly results: readonly RunResult[]; readonly ended: number }) {
  const total = results.length;
  const counts = countsOf(results);
  const failed = counts.failed + counts.cancelled + counts.untried;
  const left = useMemo(() => {
    const byOutcome = Map.groupBy(results, outcomeOfResult);
    return unplanned.flatMap((outcome) => byOutcome.get(outcome)?.toSorted(byAgentName) ?? []);
  }, [results]);
  return (
    <div className="space-y-3 text-sm">
      <div role="status" className="tabular space-y-1.5">
        <p>
          {total === 0
            ? 'Starting to plan.'
            : ended < total
              ? `Planning. ${countText(ended)} of ${countedText(total, 'agent')} planned${failed > 0 ? `, ${countText(failed)} failed` : ''}.`
              : `${total === 1 ? 'The agent has' : `All ${countText(total)} agents have`} answered. Waiting for the orchestrator to complete the plan.`}{' '}
          Nothing is changed yet.
        </p>
        <ProgressBar label="Planned agents" max={Math.max(1, total)} value={ended} />
      </div>
      {left.length > 0 && (
        <ul aria-label="Agents without a plan" className="divide-y rounded-md border">
          {left.slice(0, maxListed).map((result) => (
            <UnplannedAgent key={result.node_id} result={result} />
          ))}
          {left.length > maxListed && (
            <li className="px-3 py-1.5 text-muted text-xs">and {countText(left.length - maxListed)} more</li>
          )}
        </ul>
      )}
    </div>
  );
}

function UnplannedAgent({ result }: { readonly result: RunResult }) {
  const { name, node_id, error } = result;
  const outcome = outcomeOfResult(result);
  return (
    <li className="flex flex-wrap items-center gap-x-3 px-3 py-1.5">
      <span className="flex min-w-0 flex-1 basis-40">
        <Line text={name ?? node_id} maxLength={64} />
      </span>
      <span className="text-xs">
        <Dot tone={toneOf(outcome, 'plan')} live={outcome === 'running'}>
          {outcome === 'running' ? 'planning' : wordOf(outcome, 'plan')}
        </Dot>
      </span>
      {error !== null && (
        <span className="basis-full text-bad text-xs">
          <Text text={operationErrorText(error)} />
        </span>
      )}
    </li>
  );
}
