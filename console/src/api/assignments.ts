import {
  type AnswerOf,
  type Assignment,
  type CallOf,
  createAssignment as createAssignmentRoute,
  getAssignment,
  listAssignments,
  removeAssignment as removeAssignmentRoute,
  updateAssignment as updateAssignmentRoute,
} from '@muster/protocol/http';
import { call } from './client.ts';
import { queryClient, routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

/** Sorted by name. Assignments take precedence in this order. */
export const assignmentsQuery = routeQuery(keys.assignments, listAssignments, { all: true });

/**
 * Returns the modules that an assignment assigns. If there are none, returns the modules for which the assignment sets
 * values.
 */
export const modulesOf = ({ modules, parameters }: Pick<Assignment, 'modules' | 'parameters'>): readonly string[] =>
  modules.length === 0 ? Object.keys(parameters) : modules;

export type AssignmentWithMatches = AnswerOf<typeof getAssignment>;

export const assignmentQuery = (name: string) => routeQuery(keys.assignment(name), getAssignment, { params: { name } });

export type AssignmentBody = NonNullable<CallOf<typeof updateAssignmentRoute>['body']>;
export type NewAssignment = CallOf<typeof createAssignmentRoute>['body'];

export async function createAssignment(body: NewAssignment): Promise<Assignment> {
  const made = await call(createAssignmentRoute, { body });
  void queryClient.invalidateQueries({ queryKey: keys.assignments });
  return made;
}

export async function updateAssignment(name: string, body: AssignmentBody): Promise<Assignment> {
  const changed = await call(updateAssignmentRoute, { params: { name }, body });
  void queryClient.invalidateQueries({ queryKey: keys.assignments });
  await queryClient.invalidateQueries({ queryKey: keys.assignment(name) });
  return changed;
}

export async function removeAssignment(name: string): Promise<void> {
  await call(removeAssignmentRoute, { params: { name } });
  queryClient.removeQueries({ queryKey: keys.assignment(name) });
  await queryClient.invalidateQueries({ queryKey: keys.assignments });
}
