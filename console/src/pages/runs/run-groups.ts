import type { Operation, Run } from '@muster/protocol/http';

/** The results of a run as a person reads them: who did the same once, however many they are. Pure. */

export type RunResult = Run['results'][number];

/** How it went for an agent, as far as the run itself tells. */
export type Outcome = 'waiting' | 'running' | 'same' | 'changed' | 'failed' | 'untried' | 'cancelled';

export function outcomeOfResult({ status, summary, operation_id }: RunResult): Outcome {
  switch (status) {
    case 'queued':
      return 'waiting';
    case 'running':
      return 'running';
    case 'succeeded':
      return summary !== null && summary.changed + summary.removed > 0 ? 'changed' : 'same';
    case 'cancelled':
      return operation_id === null ? 'untried' : 'cancelled';
    default:
      return 'failed';
  }
}

/** Of how many agents each outcome is. */
export function countsOf(results: readonly RunResult[]): Readonly<Record<Outcome, number>> {
  const counts = { waiting: 0, running: 0, same: 0, changed: 0, failed: 0, untried: 0, cancelled: 0 };
  for (const result of results) counts[outcomeOfResult(result)]++;
  return counts;
}

/** A diff that is nearly as long as may be told was cut, and does not tell all. In characters. */
const wholeDiff = 60_000;

/** Where a diff shows what is in a file, its hash tells nothing more, and is another one with each name in it. */
const tellingChanges = ({ changes, diff }: Operation['resources'][number]) =>
  diff === null || diff === '' || diff.length > wholeDiff
    ? changes
    : changes.filter(({ field }) => field !== 'content');

/** Stands for the agent's own name in what is compared. */
export const ownName = '\u241fagent\u241f';

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/**
 * What makes the results of an operation others: all but when, where and how fast, and how much beside it stayed as it
 * was. A file with the name of its machine in it is alike on all of them.
 */
export function likenessOf({ status, error, resources }: Operation, name: string | null): string {
  const told = resources.filter((result) => result.status !== 'unchanged' || result.message !== null);
  const text = JSON.stringify([
    status,
    told.length === 0 ? error : null,
    told.map((result) => ({ ...result, duration_ms: 0, changes: tellingChanges(result) })),
  ]);
  return name === null ? text : text.replace(new RegExp(`(?<![\\w-])${escaped(name)}(?![\\w-])`, 'gu'), ownName);
}

/** As far as the run itself tells: who differs in this did not do the same. */
const coarseLikeness = ({ status, summary, operation_id, error }: RunResult): string =>
  JSON.stringify(
    operation_id === null || summary === null || summary.total === 0
      ? [status, error]
      : [status, summary.changed, summary.removed, summary.failed, summary.skipped],
  );

export interface RunGroup {
  readonly key: string;
  readonly outcome: Outcome;
  readonly results: readonly RunResult[];
  /** One of them whole; null while none is loaded, or where there is nothing to load. */
  readonly example: Operation | null;
  /** Those of the group that were not compared yet: they have the same counts. */
  readonly uncompared: readonly RunResult[];
}

/** Those whose resources tell more than the run does. */
const hasMore = (result: RunResult): boolean => {
  const outcome = outcomeOfResult(result);
  return (
    result.operation_id !== null &&
    (result.summary?.total ?? 0) > 0 &&
    (outcome === 'changed' || outcome === 'failed' || outcome === 'cancelled')
  );
};

/**
 * Whose operations to compare first: from each of what may be groups in turn, so that all of them show soon.
 * @returns ids of operations, at most so many
 */
export function firstToCompare(results: readonly RunResult[], most: number): string[] {
  const coarse = new Map<string, string[]>();
  for (const result of results) {
    if (!hasMore(result)) continue;
    const key = coarseLikeness(result);
    const ids = coarse.get(key);
    if (ids === undefined) coarse.set(key, [result.operation_id as string]);
    else ids.push(result.operation_id as string);
  }
  const lists = [...coarse.values()];
  const chosen: string[] = [];
  for (let turn = 0; chosen.length < most && lists.some((list) => turn < list.length); turn++)
    for (const list of lists) {
      const id = list[turn];
      if (id !== undefined && chosen.length < most) chosen.push(id);
    }
  return chosen;
}

const order: readonly Outcome[] = ['failed', 'changed', 'cancelled', 'untried', 'same', 'running', 'waiting'];

/** Who ended alike together: what failed first, then what changed, the largest group first. */
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
  /** By coarse likeness: the groups that those not compared yet may belong to. */
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
    if (!hasMore(result)) {
      // Whose plan says nothing to do are alike, whatever they have beside it.
      const key = outcome === 'same' ? 'same' : coarseLikeness(result);
      groupAt(key, outcome, null).results.push(result);
      continue;
    }
    const coarse = coarseLikeness(result);
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
    // The only one they can be like so far; of several, nobody knows.
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
      order.indexOf(one.outcome) - order.indexOf(other.outcome) || other.results.length - one.results.length,
  );
}

const notTried = /^not tried: the run was halted, because (.+)$/s;

/** Why a run was halted, from those who were not tried for it. Null when nobody was left. */
export function haltReason(results: readonly RunResult[]): string | null {
  for (const { error } of results) {
    const reason = error === null ? null : notTried.exec(error)?.[1];
    if (reason) return reason;
  }
  return null;
}

/**
 * Who was a canary: those whose operations were made first, as the run gives turns in order.
 * @param canary how many went first
 */
export function canariesOf(results: readonly RunResult[], canary: number): ReadonlySet<string> {
  const begun = results.filter(({ operation_id }) => operation_id !== null);
  const inTurn = begun.toSorted((one, other) =>
    (one.operation_id as string) < (other.operation_id as string) ? -1 : 1,
  );
  return new Set(inTurn.slice(0, canary).map(({ node_id }) => node_id));
}
