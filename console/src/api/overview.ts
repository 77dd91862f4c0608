import { getOverview } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const overviewQuery = queryOptions({
  queryKey: keys.overview,
  queryFn: ({ signal }) => call(getOverview, { signal }),
});
