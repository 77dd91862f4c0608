import type { Agent, Assignment } from '@muster/protocol/http';
import type { RunSubject } from '../apply/run-subject.ts';
import { byName, matchesAny, matching } from '../assignments/matching.ts';

/** Where the current revision of a module is applied. */

/** Returns the assignments that apply a module. Other assignments only report its drift or set values for it. */
export const enforcing = (assignments: readonly Assignment[], module: string): Assignment[] =>
  assignments.filter(({ mode, modules }) => mode === 'enforce' && modules.includes(module));

/** Returns the agents that match any of the assignments, each once, those of the first assignment first, by name. */
export const agentsOf = (assignments: readonly Assignment[], agents: readonly Agent[]): Agent[] => [
  ...new Set(assignments.flatMap(({ selector }) => matching(selector, agents)?.toSorted(byName) ?? [])),
];

/** Returns the other modules that an apply to the agents includes, because assignments add them to these agents. */
export const otherModules = (
  module: string,
  agents: readonly Agent[],
  assignments: readonly Assignment[],
): readonly string[] => [
  ...new Set(
    assignments
      .filter(({ mode, selector }) => mode === 'enforce' && matchesAny(selector, agents))
      .flatMap(({ modules }) => modules)
      .filter((other) => other !== module),
  ),
];

/** Returns what to apply: a single assignment, or the agents of several assignments in one run. */
export function rolloutOf(assignments: readonly Assignment[], agents: readonly Agent[]): RunSubject {
  const [first, ...others] = assignments;
  if (first !== undefined && others.length === 0) return { kind: 'assignment', name: first.name };
  return { kind: 'agents', node_ids: agentsOf(assignments, agents).map(({ node_id }) => node_id), modules: [] };
}
