import { outcomeOfResult, type RunResult } from '../runs/run-groups.ts';

/** Totals over the plans of several agents. */
export interface PlannedTotals {
  /** Number of resources that change. */
  readonly changed: number;
  readonly removed: number;
  /** Number of agents on which resources change or are removed. */
  readonly changedAgents: number;
  readonly removedAgents: number;
  readonly sameAgents: number;
  /** Number of agents without a usable plan, for example because they are offline. */
  readonly unplanned: number;
  /** Number of agents for which planning has ended. */
  readonly ended: number;
}

export function totalsOf(results: readonly RunResult[]): PlannedTotals {
  const totals = { changed: 0, removed: 0, changedAgents: 0, removedAgents: 0, sameAgents: 0, unplanned: 0, ended: 0 };
  for (const result of results) {
    const outcome = outcomeOfResult(result);
    if (outcome === 'waiting' || outcome === 'running') continue;
    totals.ended++;
    if (outcome === 'changed' || outcome === 'removes') {
      totals.changedAgents++;
      totals.changed += result.summary?.changed ?? 0;
      totals.removed += result.summary?.removed ?? 0;
      if (outcome === 'removes') totals.removedAgents++;
    } else if (outcome === 'same') totals.sameAgents++;
    else totals.unplanned++;
  }
  return totals;
}
