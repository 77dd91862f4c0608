/**
 * Which agents are asked for anew, and when: each by itself while they are few, all in one list when they are many, and
 * that no more often than every ten seconds. However many events there are, nothing of what they tell is lost.
 */

/** Events that come together are answered together. */
const gatherMs = 1_000;
/** As many are asked for one by one. */
const fewAgents = 16;
const wholeListMs = 10_000;

export interface DirtyAgentsParts {
  readonly fetchSome: (ids: readonly string[]) => void;
  readonly fetchAll: () => void;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Calls back after so many milliseconds; what it gives back calls that off. */
  readonly after: (ms: number, act: () => void) => () => void;
}

export function createDirtyAgents({ fetchSome, fetchAll, now, after }: DirtyAgentsParts) {
  const dirty = new Set<string>();
  let all = false;
  let waiting: (() => void) | null = null;
  let listedAt = Number.NEGATIVE_INFINITY;

  const wait = (ms: number) => {
    waiting = after(ms, flush);
  };
  const flush = () => {
    waiting = null;
    if (dirty.size === 0 && !all) return;
    if (!all && dirty.size <= fewAgents) {
      const ids = [...dirty];
      dirty.clear();
      fetchSome(ids);
      return;
    }
    const left = listedAt + wholeListMs - now();
    if (left > 0) return wait(left);
    dirty.clear();
    all = false;
    listedAt = now();
    fetchAll();
  };

  return {
    add(id: string): void {
      dirty.add(id);
      if (waiting === null) wait(gatherMs);
    },
    /** More changed than could be named. */
    addAll(): void {
      all = true;
      if (waiting === null) wait(gatherMs);
    },
    clear(): void {
      waiting?.();
      waiting = null;
      all = false;
      dirty.clear();
    },
  };
}

interface Identified {
  readonly node_id: string;
}

/**
 * The list with what is new of some agents; those that stay as they were are the same objects. Pure.
 * @param fresh by id; null: it is no more
 */
export function patched<A extends Identified>(list: readonly A[], fresh: ReadonlyMap<string, A | null>): A[] {
  const left = new Map(fresh);
  const next: A[] = [];
  for (const agent of list) {
    const change = left.get(agent.node_id);
    left.delete(agent.node_id);
    if (change === undefined) next.push(agent);
    else if (change !== null) next.push(change);
  }
  for (const change of left.values()) if (change !== null) next.push(change);
  return next;
}
