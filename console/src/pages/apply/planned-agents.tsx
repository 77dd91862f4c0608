import { ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { countedText } from '../../parts/count.ts';
import { ProgressBar } from '../../parts/progress-bar.tsx';
import { RunChanges } from '../runs/run-changes.tsx';
import type { RunResult } from '../runs/run-groups.ts';
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
}: {
  readonly results: readonly RunResult[];
  readonly totals: PlannedTotals;
  readonly isPlanned: boolean;
}) {
  const [isOpen, setOpen] = useState(true);
  if (!isPlanned)
    return (
      <div role="status" className="space-y-1.5 text-sm">
        <p className="tabular">
          Planning. {results.length > 0 && `${totals.ended} of ${countedText(results.length, 'agent')} planned. `}
          Nothing is changed yet.
        </p>
        {results.length > 0 && <ProgressBar label="Planned agents" max={results.length} value={totals.ended} />}
      </div>
    );
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
      {isOpen && totals.ended > 0 && <RunChanges folded results={results} kind="plan" />}
    </div>
  );
}
