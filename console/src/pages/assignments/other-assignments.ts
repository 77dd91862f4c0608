import type { Agent, Assignment } from '@muster/protocol/http';
import { matchesAny } from './matching.ts';

/**
 * Returns the other assignments that an apply of this assignment includes: those in mode `enforce` that assign modules to
 * one of its agents. An apply always brings an agent to its whole desired state.
 * @param agents the agents that match the assignment
 */
export const otherAssignments = (
  name: string,
  assignments: readonly Assignment[],
  agents: readonly Agent[],
): readonly Assignment[] =>
  assignments.filter(
    (other) =>
      other.name !== name && other.mode === 'enforce' && other.modules.length > 0 && matchesAny(other.selector, agents),
  );
