import type { RunOutcomes } from '@muster/protocol/http';
import { Ban, Check, Clock, type LucideIcon, Play, SkipForward, X } from 'lucide-react';
import { type RunOutcome, runOutcomeOrder } from '../../../../client/src/run-outcomes.ts';
import { classNames } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';

const looks: Readonly<Record<RunOutcome, { readonly fill: string; readonly text: string; readonly icon: LucideIcon }>> =
  {
    failed: { fill: 'bg-bad', text: 'text-bad', icon: X },
    cancelled: { fill: 'bg-warn', text: 'text-warn', icon: Ban },
    skipped: { fill: 'bg-line-strong', text: 'text-muted', icon: SkipForward },
    running: { fill: 'bg-info', text: 'text-info', icon: Play },
    waiting: { fill: 'bg-line', text: 'text-muted', icon: Clock },
    succeeded: { fill: 'bg-good', text: 'text-muted', icon: Check },
  };

const presentIn = (outcomes: RunOutcomes): RunOutcome[] => runOutcomeOrder.filter((outcome) => outcomes[outcome] > 0);

/** A run's agents by outcome, failures first: a bar and the counts. */
export function OutcomeCounts({ outcomes }: { readonly outcomes: RunOutcomes }) {
  const present = presentIn(outcomes);
  if (present.length === 0) return <span className="text-muted">no agents</span>;
  const total = present.reduce((sum, outcome) => sum + outcomes[outcome], 0);
  return (
    <span className="@container flex min-w-0 flex-1 items-center gap-3">
      {/* The bar is shown only if all counts fit next to it. */}
      <span aria-hidden="true" className="hidden h-1.5 w-24 shrink-0 gap-px overflow-hidden rounded-full @[19rem]:flex">
        {present.map((outcome) => (
          <span
            key={outcome}
            className={classNames(looks[outcome].fill, 'h-full')}
            style={{ width: `${(outcomes[outcome] / total) * 100}%`, minWidth: 3 }}
          />
        ))}
      </span>
      <span className="tabular truncate">
        {present.map((outcome, index) => (
          <span key={outcome}>
            {index > 0 && <span className="text-muted"> · </span>}
            <span className={looks[outcome].text}>
              {countText(outcomes[outcome])} {outcome}
            </span>
          </span>
        ))}
      </span>
    </span>
  );
}

/** A run's agents by outcome, for phones: an icon and a count each. */
export const CompactOutcomeCounts = ({ outcomes }: { readonly outcomes: RunOutcomes }) => (
  <span className="tabular flex gap-2.5 text-xs">
    {presentIn(outcomes).map((outcome) => {
      const { text, icon: Icon } = looks[outcome];
      return (
        <span key={outcome} className={classNames(text, 'inline-flex items-center gap-0.5')}>
          <Icon aria-hidden="true" className="size-3 shrink-0" />
          {countText(outcomes[outcome])}
          <span className="sr-only"> {outcome}</span>
        </span>
      );
    })}
  </span>
);
