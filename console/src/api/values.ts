import { listValues } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const valuesQuery = (node_id: string) =>
  queryOptions({
    queryKey: keys.values(node_id),
    queryFn: ({ signal }) => call(listValues, { params: { node_id }, all: true, signal }),
  });
