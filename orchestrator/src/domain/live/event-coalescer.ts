import { type Passing, passing } from './live-frames.ts';

/**
 * Coalesces many simultaneous changes, such as reconnects of thousands of agents. The first changes of a turn are
 * passed on immediately. Later ones are combined at its end, by name unless there are too many names.
 */

/** Changes of each kind passed on individually in a turn. */
const alone = 20;
/** Maximum number of names in a combined change; beyond it, clients reload everything. */
const maxNamed = 500;

/** Changes that tell clients to reload all agents or operations. */
export const allAgents = passing('agents', 'agent', undefined, { agents: null });
export const allOperations = passing('operations', 'state', undefined, { operations: null });

const together = { agent: ['agents', 'agent'], operation: ['operations', 'state'] } as const;

export interface Crowd {
  /** @returns the change to send immediately; null when it is combined at the end of the turn */
  take(change: Passing): Passing | null;
  /** Ends a turn. @returns the combined changes */
  turn(): Passing[];
}

export function createCrowd(): Crowd {
  const told = { agent: 0, operation: 0 };
  /** Combined changes by content, in the order of the last occurrence. */
  const kept = { agent: new Map<string, Passing['data']>(), operation: new Map<string, Passing['data']>() };
  return {
    take(change) {
      const { event, data } = change;
      if (event !== 'agent' && event !== 'operation') return change;
      if (++told[event] <= alone) return change;
      const said = JSON.stringify(data);
      kept[event].delete(said);
      // An entry beyond the maximum marks that there are too many names.
      if (kept[event].size <= maxNamed) kept[event].set(said, data);
      return null;
    },
    turn() {
      const few: Passing[] = [];
      for (const kind of ['agent', 'operation'] as const) {
        const [event, category] = together[kind];
        if (kept[kind].size > maxNamed) few.push(kind === 'agent' ? allAgents : allOperations);
        else if (kept[kind].size > 0)
          few.push(passing(event, category, undefined, { [event]: [...kept[kind].values()] }));
        kept[kind].clear();
        told[kind] = 0;
      }
      return few;
    },
  };
}
