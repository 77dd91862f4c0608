import type { RunEntry, RunOutcomes } from '@muster/protocol/http';
import { type RunOutcome, runOutcomeOrder } from '../../../../client/src/run-outcomes.ts';
import { statusText } from '../../../../client/src/status-text.ts';
import { classNames } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';
import { Counts } from '../../parts/counts.tsx';
import { StatusDot } from '../../parts/work-status.tsx';

const outcomeColors: Readonly<Record<RunOutcome, { readonly fill: string; readonly text: string }>> = {
  failed: { fill: 'bg-bad', text: 'text-bad' },
  cancelled: { fill: 'bg-warn-mark', text: 'text-warn' },
  skipped: { fill: 'bg-line-strong', text: 'text-muted' },
  running: { fill: 'bg-info', text: 'text-info' },
  waiting: { fill: 'bg-line', text: 'text-muted' },
  succeeded: { fill: 'bg-good', text: 'text-muted' },
};

/** The order of the bar: it fills from the left while agents finish. */
const barOrder: readonly RunOutcome[] = ['succeeded', 'failed', 'cancelled', 'running', 'skipped', 'waiting'];

const presentIn = (outcomes: RunOutcomes): RunOutcome[] => runOutcomeOrder.filter((outcome) => outcomes[outcome] > 0);

/** The counts of a run's agents by outcome, failures first. */
const OutcomeWords = ({ outcomes, wrap }: { readonly outcomes: RunOutcomes; readonly wrap: boolean }) => (
  <Counts
    wrap={wrap}
    items={presentIn(outcomes).map((outcome) => ({
      key: outcome,
      text: `${countText(outcomes[outcome])} ${statusText(outcome)}`,
      className: outcomeColors[outcome].text,
    }))}
  />
);

/** A run's agents by outcome: a bar, and the counts with failures first. */
export function OutcomeCounts({
  outcomes,
  wrap = false,
}: {
  readonly outcomes: RunOutcomes;
  /** Whether the counts wrap if space is short. By default they are truncated. */
  readonly wrap?: boolean;
}) {
  const present = presentIn(outcomes);
  if (present.length === 0) return <span className="text-muted">no agents</span>;
  const total = present.reduce((sum, outcome) => sum + outcomes[outcome], 0);
  return (
    <span className="@container flex min-w-0 flex-1 items-center gap-3">
      {/* The bar is shown only if all counts fit next to it. */}
      <span aria-hidden="true" className="hidden h-1.5 w-24 shrink-0 gap-px overflow-hidden rounded-full @[19rem]:flex">
        {barOrder.map(
          (outcome) =>
            outcomes[outcome] > 0 && (
              <span
                key={outcome}
                className={classNames(outcomeColors[outcome].fill, 'h-full')}
                style={{ width: `${(outcomes[outcome] / total) * 100}%`, minWidth: 3 }}
              />
            ),
        )}
      </span>
      <OutcomeWords {...{ outcomes, wrap }} />
    </span>
  );
}

/** A run's status, and its agents by outcome, failures first, on a phone. The counts of all rows start in one column. */
export const StatusAndOutcomes = ({ status, outcomes }: Pick<RunEntry, 'status' | 'outcomes'>) => (
  <span className="flex min-w-0 flex-1 items-start gap-2">
    <span className="flex w-22 shrink-0">
      <StatusDot status={status} />
    </span>
    <OutcomeWords wrap outcomes={outcomes} />
  </span>
);
