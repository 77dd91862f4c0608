import { listValues } from '@muster/protocol/http';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export const valuesQuery = (node_id: string) =>
  routeQuery(keys.values(node_id), listValues, { params: { node_id }, all: true });
