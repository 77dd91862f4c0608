import type { Client } from '@muster/protocol/client';
import { listOperators } from '@muster/protocol/http';

/** Returns usernames by operator ID, including those of removed operators. */
export async function operatorNames(call: Client): Promise<Map<string, string>> {
  const operators = await call(listOperators, { query: { include_removed: 'true' }, all: true });
  return new Map(operators.map(({ operator_id, username }) => [operator_id, username]));
}
