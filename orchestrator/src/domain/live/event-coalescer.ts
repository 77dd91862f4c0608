import { type Passing, passing } from './live-frames.ts';

/**
 * Many changes at once, such as ten thousand agents that come back, told as few. Of each turn the first are told at once,
 * one by one; what comes after them is told together at its end, by name as long as the names are not too many.
 */

/** Told one by one in a turn, of each kind. */
const alone = 20;
/** Named together; of more, everything is to be looked at anew. */
const mostNamed = 500;

/** Everything of these kinds is to be looked at anew. */
export const allAgents = passing('agents', 'agent', undefined, { agents: null });
export const allOperations = passing('operations', 'state', undefined, { operations: null });

const together = { agent: ['agents', 'agent'], operation: ['operations', 'state'] } as const;

export interface Crowd {
  /** @returns what is to be told at once; null: it is told at the end of the turn */
  take(change: Passing): Passing | null;
  /** Ends a turn. @returns what was kept in it */
  turn(): Passing[];
}

export function createCrowd(): Crowd {
  const told = { agent: 0, operation: 0 };
  /** By what it says, in the order in which it was said last. */
  const kept = { agent: new Map<string, Passing['data']>(), operation: new Map<string, Passing['data']>() };
  return {
    take(change) {
      const { event, data } = change;
      if (event !== 'agent' && event !== 'operation') return change;
      if (++told[event] <= alone) return change;
      const said = JSON.stringify(data);
      kept[event].delete(said);
      // One more than are named says that there are too many.
      if (kept[event].size <= mostNamed) kept[event].set(said, data);
      return null;
    },
    turn() {
      const few: Passing[] = [];
      for (const kind of ['agent', 'operation'] as const) {
        const [event, category] = together[kind];
        if (kept[kind].size > mostNamed) few.push(kind === 'agent' ? allAgents : allOperations);
        else if (kept[kind].size > 0)
          few.push(passing(event, category, undefined, { [event]: [...kept[kind].values()] }));
        kept[kind].clear();
        told[kind] = 0;
      }
      return few;
    },
  };
}
