import type { Agent, Assignment, Module, OperationEntry, Window } from '@muster/protocol/http';
import { isEmpty, matchesSelector, parseSelector } from '@muster/protocol/selector';

type Labels = Pick<Agent, 'tags' | 'attributes'>;

/** Reports whether a selector matches an agent. An empty or invalid selector matches none. */
function matches(selector: string, agent: Labels): boolean {
  const parsed = parseSelector(selector);
  return parsed.ok && !isEmpty(parsed.selector) && matchesSelector(parsed.selector, agent);
}

/** Returns the assignments that apply to an agent, in order of precedence. */
export const assignmentsOf = (agent: Labels, assignments: readonly Assignment[]): readonly Assignment[] =>
  assignments.filter(({ selector }) => matches(selector, agent));

/**
 * Returns the modules that are assigned to an agent, in execution order, without duplicates. Ignores audit assignments,
 * which do not apply modules.
 */
export const modulesOf = (assignments: readonly Assignment[]): readonly string[] => [
  ...new Set(assignments.filter(({ mode }) => mode === 'enforce').flatMap(({ modules }) => modules)),
];

/**
 * Returns the agent's maintenance window that is open or begins next, or null.
 * @param now Unix seconds
 */
export function nextWindow(agent: Labels, windows: readonly Window[], now: number): Window | null {
  const left = windows.filter(
    ({ selector, ends_at }) => ends_at > now && (selector === null || matches(selector, agent)),
  );
  return left.toSorted((one, other) => one.starts_at - other.starts_at)[0] ?? null;
}

/**
 * Returns the assigned modules that the last apply did not include, or included in an older revision.
 * @param modules names of the assigned modules
 */
export function modulesSince(
  applied: Pick<OperationEntry, 'modules' | 'created_at'>,
  modules: readonly string[],
  stored: readonly Pick<Module, 'name' | 'uploaded_at'>[],
): readonly string[] {
  const uploaded = new Map(stored.map(({ name, uploaded_at }) => [name, uploaded_at]));
  return modules.filter((name) => !applied.modules.includes(name) || (uploaded.get(name) ?? 0) > applied.created_at);
}
