import {
  type AnswerOf,
  addOperator,
  listOperators,
  type Operator,
  type Role,
  removeOperatorReporting,
} from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { call } from './client.ts';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

/** All operators. Includes removed operators, because events and records may still refer to them. */
export const operatorsQuery = routeQuery(keys.operators, listOperators, {
  query: { include_removed: 'true' },
  all: true,
});

const namesOf = (operators: Operator[]): ReadonlyMap<string, string> =>
  new Map(operators.map(({ operator_id, username }) => [operator_id, username]));
const none: ReadonlyMap<string, string> = new Map();

/** Returns operator names by operator id, or an empty map while loading. */
export function useOperatorNames(): ReadonlyMap<string, string> {
  const { data } = useQuery({ ...operatorsQuery, select: namesOf });
  return data ?? none;
}

export const addNewOperator = (public_key: string, username: string, role: Role) =>
  call(addOperator, { body: { public_key, username, role } });

export type RemovedOperator = AnswerOf<typeof removeOperatorReporting>;

export const deleteOperator = (operator_id: string): Promise<RemovedOperator> =>
  call(removeOperatorReporting, { params: { operator_id } });

/**
 * Lists the objects that were removed together with an operator and those that remain. Returns an empty string if there
 * are none.
 */
export function endedText({ ended, operators_added, left }: RemovedOperator): string {
  const counted = (count: number, noun: string, plural = `${noun}s`) =>
    count === 0 ? [] : [`${count} ${count === 1 ? noun : plural}`];
  const some = [
    ...counted(ended.sessions, 'sign-in session'),
    ...counted(ended.terminals.length, 'terminal'),
    ...counted(ended.web_logins, 'sign-in link'),
    ...counted(ended.enrolment_tokens.length, 'enrollment token'),
  ];
  const remaining = [
    ...counted(left.modules.length, 'module'),
    ...counted(left.assignments.length, 'assignment'),
    ...counted(left.channels.length, 'channel'),
    ...counted(left.runs.length, 'run'),
    ...counted(left.operations.length, 'operation'),
  ];
  const added = operators_added.map(({ username }) => username).join(', ');
  return [
    ...(some.length === 0 ? [] : [`Ended: ${some.join(', ')}.`]),
    ...(added === '' ? [] : [`Operators added by this operator remain: ${added}.`]),
    ...(remaining.length === 0 ? [] : [`Review the remaining objects: ${remaining.join(', ')}.`]),
  ].join(' ');
}
