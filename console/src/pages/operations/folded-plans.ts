import type { OperationStatus, Summary } from '@muster/protocol';
import type { OperationEntry } from '@muster/protocol/http';

/** An operation, or the plans of a run as one row. */
export interface OperationRow extends OperationEntry {
  /** The number of agents if the row stands for the plans of a run. */
  readonly agents?: number;
}

/** Statuses of the plans of a run, the most important first. */
const statusOrder: readonly OperationStatus[] = [
  ...(['failed', 'interrupted', 'expired', 'running', 'queued'] as const),
  ...(['cancelled', 'succeeded'] as const),
];

/**
 * Folds consecutive plans of the same run into one row, because each dialog that applies to many agents plans on all of
 * them.
 */
export function foldPlans(operations: readonly OperationEntry[]): OperationRow[] {
  const folded: [OperationEntry, ...OperationEntry[]][] = [];
  for (const operation of operations) {
    const last = folded.at(-1);
    if (last !== undefined && operation.kind === 'plan' && isSameRun(last[0], operation)) last.push(operation);
    else folded.push([operation]);
  }
  return folded.map((plans) => (plans.length === 1 ? plans[0] : rowOf(plans)));
}

const isSameRun = (one: OperationEntry, other: OperationEntry): boolean =>
  one.kind === 'plan' && one.run_id !== null && one.run_id === other.run_id;

function rowOf(plans: readonly [OperationEntry, ...OperationEntry[]]): OperationRow {
  const [newest] = plans;
  const worst = plans.toSorted((a, b) => statusOrder.indexOf(a.status) - statusOrder.indexOf(b.status))[0] ?? newest;
  const ends = plans.map(({ finished_at }) => finished_at);
  const starts = plans.flatMap(({ started_at }) => (started_at === null ? [] : [started_at]));
  return {
    ...newest,
    status: worst.status,
    error: worst.error,
    modules: [...new Set(plans.flatMap(({ modules }) => modules))],
    started_at: starts.length === 0 ? null : Math.min(...starts),
    finished_at: ends.reduce((last, end) => (last === null || end === null ? null : Math.max(last, end))),
    summary: plans.map(({ summary }) => summary).reduce(sumOf),
    agents: plans.length,
  };
}

const sumOf = (one: Summary, other: Summary): Summary => ({
  ...{ total: one.total + other.total, unchanged: one.unchanged + other.unchanged },
  ...{ changed: one.changed + other.changed, removed: one.removed + other.removed },
  ...{ failed: one.failed + other.failed, skipped: one.skipped + other.skipped },
});
