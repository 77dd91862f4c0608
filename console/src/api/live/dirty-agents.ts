/**
 * Schedules requests for changed agents: individual records if few changed; otherwise the whole list, at most every ten
 * seconds. No change is lost.
 */

/** Delay between the first event and the fetch, to batch events. */
const gatherMs = 1_000;
/** Maximum number of agents to fetch one by one. */
const fewAgents = 16;
/** Minimum time between fetches of the whole list. */
const fullListMs = 10_000;

export interface DirtyAgentsParts {
  readonly fetchSome: (ids: readonly string[]) => void;
  readonly fetchAll: () => void;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Calls `act` after `ms` milliseconds. The returned function cancels the call. */
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
    const left = listedAt + fullListMs - now();
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
    /** Call this function if an event does not name all agents that changed. */
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
 * Returns a copy of the list with the changed agents replaced. Unchanged agents keep their object identity.
 * @param fresh by node id; null if the agent was removed
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
