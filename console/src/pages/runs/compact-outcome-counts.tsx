import type { RunOutcomes } from '@muster/protocol/http';
import { Ban, Check, Clock, type LucideIcon, Play, SkipForward, X } from 'lucide-react';
import type { RunOutcome } from '../../../../client/src/run-outcomes.ts';
import { classNames } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';
import { outcomeColors, presentIn } from './outcome-counts.tsx';

// Separate from outcome-counts.tsx, because the overview, which opens first, would otherwise load all the icons.
const icons: Readonly<Record<RunOutcome, LucideIcon>> = {
  failed: X,
  cancelled: Ban,
  skipped: SkipForward,
  running: Play,
  waiting: Clock,
  succeeded: Check,
};

/** A run's agents by outcome, for phones: an icon and a count each. */
export const CompactOutcomeCounts = ({ outcomes }: { readonly outcomes: RunOutcomes }) => (
  <span className="tabular flex gap-2.5 text-xs">
    {presentIn(outcomes).map((outcome) => {
      const Icon = icons[outcome];
      return (
        <span key={outcome} className={classNames(outcomeColors[outcome].text, 'inline-flex items-center gap-0.5')}>
          <Icon aria-hidden="true" className="size-3 shrink-0" />
          {countText(outcomes[outcome])}
          <span className="sr-only"> {outcome}</span>
        </span>
      );
    })}
  </span>
);
