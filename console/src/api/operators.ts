import { addOperator, listOperators, type Operator, type Role, removeOperator } from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './keys.ts';

/** All who are or were operators: what they did is still told by their names. */
export const operatorsQuery = queryOptions({
  queryKey: keys.operators,
  queryFn: ({ signal }) => call(listOperators, { query: { include_removed: 'true' }, all: true, signal }),
});

const namesOf = (operators: Operator[]): ReadonlyMap<string, string> =>
  new Map(operators.map(({ operator_id, username }) => [operator_id, username]));
const none: ReadonlyMap<string, string> = new Map();

/** What operators are called, by operator id. */
export function useOperatorNames(): ReadonlyMap<string, string> {
  const { data } = useQuery({ ...operatorsQuery, select: namesOf });
  return data ?? none;
}

export const addNewOperator = (public_key: string, username: string, role: Role) =>
  call(addOperator, { body: { public_key, username, role } });

export const deleteOperator = (operator_id: string) => call(removeOperator, { params: { operator_id } });
