import { getAssignment, listAssignments } from '@muster/protocol/http';
import { call } from '../client.ts';
import { queryClient } from '../query-client.ts';
import { keys } from '../query-keys.ts';

/**
 * An apply removes every module that neither an assignment nor the request names. To repair an agent without removing
 * anything, the request must name all of the agent's modules that have no assignment.
 */

export interface AgentModules {
  readonly node_id: string;
  /** The modules in an agent's applied state and desired state. */
  readonly modules: readonly string[];
}

export interface AssignedModules {
  readonly modules: readonly string[];
  readonly matches: readonly string[];
}

/** Returns, by node ID, the modules of each agent that are in none of its assignments. */
export function unassignedModules(
  agents: readonly AgentModules[],
  assignments: readonly AssignedModules[],
): ReadonlyMap<string, readonly string[]> {
  const given = new Map(agents.map(({ node_id }) => [node_id, new Set<string>()]));
  for (const { modules, matches } of assignments)
    for (const id of matches) for (const module of modules) given.get(id)?.add(module);
  return new Map(
    agents.map(({ node_id, modules }) => [node_id, modules.filter((module) => !given.get(node_id)?.has(module))]),
  );
}

/**
 * Groups agents by the modules that a request must name. Each group needs its own run. Returns the largest group first.
 */
export function runsToRepair(
  beyond: ReadonlyMap<string, readonly string[]>,
): { readonly node_ids: readonly string[]; readonly modules: readonly string[] }[] {
  const groups = new Map<string, { node_ids: string[]; modules: readonly string[] }>();
  for (const [node_id, modules] of beyond) {
    const key = modules.toSorted().join('\n');
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { node_ids: [node_id], modules });
    else group.node_ids.push(node_id);
  }
  return [...groups.values()].toSorted((one, other) => other.node_ids.length - one.node_ids.length);
}

/** Loads the assignments and returns each agent's modules without an assignment, by node id. */
export async function loadUnassignedModules(
  agents: readonly AgentModules[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const assignments = await queryClient.fetchQuery({
    queryKey: keys.assignments,
    queryFn: ({ signal }) => call(listAssignments, { all: true, signal }),
  });
  const gives = await Promise.all(assignments.map(({ name }) => call(getAssignment, { params: { name } })));
  return unassignedModules(agents, gives);
}
