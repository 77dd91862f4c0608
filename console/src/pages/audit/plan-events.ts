import type { AuditEvent } from '@muster/protocol/http';
import { isPlanEvent } from '../../api/live/plan-events.ts';

/** An event, or consecutive plan events, newest first. */
export type FoldedEvent = { readonly event: AuditEvent } | { readonly plans: readonly [AuditEvent, ...AuditEvent[]] };

/** Folds each series of at least two consecutive plan events. */
export function foldPlanEvents(events: readonly AuditEvent[]): FoldedEvent[] {
  const folded: FoldedEvent[] = [];
  let series: AuditEvent[] = [];
  const endSeries = () => {
    const [first, ...others] = series;
    if (first !== undefined) folded.push(others.length === 0 ? { event: first } : { plans: [first, ...others] });
    series = [];
  };
  for (const event of events) {
    if (isPlanEvent(event)) series.push(event);
    else {
      endSeries();
      folded.push({ event });
    }
  }
  endSeries();
  return folded;
}
