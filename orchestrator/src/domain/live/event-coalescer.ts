import { type Passing, passing } from './live-frames.ts';

/**
 * Coalesces simultaneous changes, such as when thousands of agents reconnect. The first changes in a turn are forwarded
 * immediately. Later ones are combined at the end of the turn, with their names unless there are too many.
 */

/** Number of changes, per kind and turn, that are forwarded individually. */
const individually = 20;
/** Maximum number of names in a combined change. Without names, clients reload everything. */
const maxNamed = 500;

/** The change that makes clients reload all agents. {@link allOperations} is the same for operations. */
export const allAgents = passing('agents', 'agent', undefined, { agents: null });
export const allOperations = passing('operations', 'state', undefined, { operations: null });

const together = { agent: ['agents', 'agent'], operation: ['operations', 'state'] } as const;

export interface Crowd {
  /**
   * Adds a change.
   * @returns the change if it must be sent immediately; null if it is combined at the end of the turn
   */
  take(change: Passing): Passing | null;
  /** Ends a turn and returns the combined changes. */
  turn(): Passing[];
}

export function createCrowd(): Crowd {
  const count = { agent: 0, operation: 0 };
  /** Combined changes by content, ordered by their last occurrence. */
  const groups = { agent: new Map<string, Passing['data']>(), operation: new Map<string, Passing['data']>() };
  return {
    take(change) {
      const { event, data } = change;
      if (event !== 'agent' && event !== 'operation') return change;
      if (++count[event] <= individually) return change;
      const text = JSON.stringify(data);
      groups[event].delete(text);
      // Keeps one more name than the maximum, to show that the maximum is exceeded.
      if (groups[event].size <= maxNamed) groups[event].set(text, data);
      return null;
    },
    turn() {
      const combined: Passing[] = [];
      for (const kind of ['agent', 'operation'] as const) {
        const [event, category] = together[kind];
        if (groups[kind].size > maxNamed) combined.push(kind === 'agent' ? allAgents : allOperations);
        else if (groups[kind].size > 0)
          combined.push(passing(event, category, undefined, { [event]: [...groups[kind].values()] }));
        groups[kind].clear();
        count[kind] = 0;
      }
      return combined;
    },
  };
}
