import { getAssignment, listAssignments } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

/**
 * What an apply must be told to keep. It takes away what neither an assignment gives nor the request names; so whoever
 * only wants to put a machine right names what is on it beyond its assignments.
 */

export interface Holds {
  readonly node_id: string;
  /** Modules of what is in place or should be. */
  readonly modules: readonly string[];
}

export interface Gives {
  readonly modules: readonly string[];
  readonly matches: readonly string[];
}

/** By node id, each agent's modules that no assignment gives it. */
export function unassignedModules(
  agents: readonly Holds[],
  assignments: readonly Gives[],
): ReadonlyMap<string, readonly string[]> {
  const given = new Map(agents.map(({ node_id }) => [node_id, new Set<string>()]));
  for (const { modules, matches } of assignments)
    for (const id of matches) for (const module of modules) given.get(id)?.add(module);
  return new Map(
    agents.map(({ node_id, modules }) => [node_id, modules.filter((module) => !given.get(node_id)?.has(module))]),
  );
}

/** Agents that need the same modules named, together: as many runs as there are such groups, most often one. */
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

/** What must be named for each of them, by the assignments as they are now. */
export async function loadUnassignedModules(agents: readonly Holds[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const assignments = await queryClient.fetchQuery({
    queryKey: keys.assignments,
    queryFn: ({ signal }) => call(listAssignments, { all: true, signal }),
  });
  const gives = await Promise.all(assignments.map(({ name }) => call(getAssignment, { params: { name } })));
  return unassignedModules(agents, gives);
}

export const beyondQuery = (agents: readonly Holds[]) =>
  queryOptions({
    queryKey: [...keys.assignments, 'beyond', ...agents.map(({ node_id }) => node_id)],
    queryFn: () => loadUnassignedModules(agents),
    // Assignments may have changed since somebody last asked.
    gcTime: 0,
    staleTime: 0,
  });
