import type { Operation, Run } from '@muster/protocol/http';
import { compareNames } from '../../parts/table/compare-names.ts';

/** Groups a run's results by agents with the same changes. */

export type RunResult = Run['results'][number];

/** An agent's outcome, as far as it is known without loading the operation. `removes` includes other changes. */
export type Outcome = 'waiting' | 'running' | 'same' | 'changed' | 'removes' | 'failed' | 'untried' | 'cancelled';

export function outcomeOfResult({ status, summary, operation_id }: RunResult): Outcome {
  switch (status) {
    case 'queued':
      return 'waiting';
    case 'running':
      return 'running';
    case 'succeeded':
      if (summary !== null && summary.removed > 0) return 'removes';
      return summary !== null && summary.changed > 0 ? 'changed' : 'same';
    case 'cancelled':
      return operation_id === null ? 'untried' : 'cancelled';
    default:
      return 'failed';
  }
}

/** Counts agents by outcome. */
export function countsOf(results: readonly RunResult[]): Readonly<Record<Outcome, number>> {
  const counts = { waiting: 0, running: 0, same: 0, changed: 0, removes: 0, failed: 0, untried: 0, cancelled: 0 };
  for (const result of results) counts[outcomeOfResult(result)]++;
  return counts;
}

/**
 * Returns a key that is computed without loading the operation. Agents with different keys made different changes;
 * agents with the same key may have made the same changes.
 */
const coarseKey = ({ status, summary, operation_id, error }: RunResult): string =>
  JSON.stringify(
    operation_id === null || summary === null || summary.total === 0
      ? [status, error]
      : [status, summary.changed, summary.removed, summary.failed, summary.skipped],
  );

export interface RunGroup {
  readonly key: string;
  readonly outcome: Outcome;
  readonly results: readonly RunResult[];
  /** The operation of one member; null while loading, or if the members have no operation. */
  readonly example: Operation | null;
  /** Members grouped only by their counts, because their operations are not compared yet. */
  readonly uncompared: readonly RunResult[];
}

/** Reports whether the result has an operation whose resources can be compared. */
const isComparable = (result: RunResult): boolean => {
  const outcome = outcomeOfResult(result);
  return result.operation_id !== null && (result.summary?.total ?? 0) > 0 && hasChanges(outcome);
};

/** Reports whether agents with this outcome may have changes to show. */
export const hasChanges = (outcome: Outcome): boolean =>
  outcome === 'changed' || outcome === 'removes' || outcome === 'failed' || outcome === 'cancelled';

/**
 * Chooses the operations to compare first. Alternates between results with different counts, so that all groups appear
 * soon.
 * @returns at most `max` operation ids
 */
export function firstToCompare(results: readonly RunResult[], max: number): string[] {
  const coarse = new Map<string, string[]>();
  for (const result of results) {
    if (!isComparable(result)) continue;
    const key = coarseKey(result);
    const ids = coarse.get(key);
    if (ids === undefined) coarse.set(key, [result.operation_id as string]);
    else ids.push(result.operation_id as string);
  }
  const lists = [...coarse.values()];
  const chosen: string[] = [];
  for (let turn = 0; chosen.length < max && lists.some((list) => turn < list.length); turn++)
    for (const list of lists) {
      const id = list[turn];
      if (id !== undefined && chosen.length < max) chosen.push(id);
    }
  return chosen;
}

/** Outcomes, in order of urgency: those that need the operator's attention come first. */
export const outcomeOrder: readonly Outcome[] = [
  'failed',
  'removes',
  'changed',
  'cancelled',
  'untried',
  'same',
  'running',
  'waiting',
];

/** Compares results by the names of their agents, in natural order. */
export const byAgentName = (a: RunResult, b: RunResult): number =>
  compareNames(a.name ?? a.node_id, b.name ?? b.node_id);

/** Groups finished agents by outcome, in `outcomeOrder`. Within an outcome, larger groups come first. */
export function groupResults(
  results: readonly RunResult[],
  likeness: ReadonlyMap<string, string>,
  examples: ReadonlyMap<string, Operation>,
): RunGroup[] {
  interface Draft {
    key: string;
    outcome: Outcome;
    results: RunResult[];
    example: Operation | null;
    uncompared: RunResult[];
  }
  const groups = new Map<string, Draft>();
  const leftOver = new Map<string, RunResult[]>();
  /** Candidate groups for uncompared agents, by coarse key. */
  const byCoarse = new Map<string, Set<Draft>>();
  const groupAt = (key: string, outcome: Outcome, example: Operation | null): Draft => {
    const found = groups.get(key);
    if (found !== undefined) return found;
    const made: Draft = { key, outcome, results: [], example, uncompared: [] };
    groups.set(key, made);
    return made;
  };
  for (const result of results) {
    const outcome = outcomeOfResult(result);
    if (outcome === 'waiting' || outcome === 'running') continue;
    if (!isComparable(result)) {
      // All agents without changes form one group.
      const key = outcome === 'same' ? 'same' : coarseKey(result);
      groupAt(key, outcome, null).results.push(result);
      continue;
    }
    const coarse = coarseKey(result);
    const fine = likeness.get(result.operation_id as string);
    if (fine === undefined) {
      const list = leftOver.get(coarse);
      if (list === undefined) leftOver.set(coarse, [result]);
      else list.push(result);
      continue;
    }
    const group = groupAt(fine, outcome, examples.get(fine) ?? null);
    group.results.push(result);
    const set = byCoarse.get(coarse);
    if (set === undefined) byCoarse.set(coarse, new Set([group]));
    else set.add(group);
  }
  for (const [coarse, list] of leftOver) {
    const candidates = [...(byCoarse.get(coarse) ?? [])];
    // With a single candidate, the agent can only belong to that group.
    const [only] = candidates;
    if (candidates.length === 1 && only !== undefined) {
      only.results.push(...list);
      only.uncompared.push(...list);
    } else {
      const group = groupAt(`? ${coarse}`, outcomeOfResult(list[0] as RunResult), null);
      group.results.push(...list);
      group.uncompared.push(...list);
    }
  }
  return [...groups.values()].toSorted(
    (one, other) =>
      outcomeOrder.indexOf(one.outcome) - outcomeOrder.indexOf(other.outcome) ||
      other.results.length - one.results.length,
  );
}

const notTried = /^not tried: the run was halted, because (.+)$/s;

/** Returns why the run was halted if `error` is the error of a skipped agent; otherwise null. */
export const reasonOfHalt = (error: string): string | null => notTried.exec(error)?.[1] ?? null;

/** Returns why a run was halted, as reported by its skipped agents, or null if none was skipped. */
export function haltReason(results: readonly RunResult[]): string | null {
  for (const { error } of results) {
    const reason = error === null ? null : reasonOfHalt(error);
    if (reason !== null) return reason;
  }
  return null;
}

/**
 * Returns a run's canaries: the agents whose operations were created first.
 * @param canary number of canaries
 */
export function canariesOf(results: readonly RunResult[], canary: number): ReadonlySet<string> {
  const started = results.filter(({ operation_id }) => operation_id !== null);
  const inTurn = started.toSorted((one, other) =>
    (one.operation_id as string) < (other.operation_id as string) ? -1 : 1,
  );
  return new Set(inTurn.slice(0, canary).map(({ node_id }) => node_id));
}
