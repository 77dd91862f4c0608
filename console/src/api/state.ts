import { getState } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const stateQuery = (node_id: string) =>
  queryOptions({
    queryKey: keys.state(node_id),
    queryFn: ({ signal }) => call(getState, { params: { node_id }, signal }),
  });
