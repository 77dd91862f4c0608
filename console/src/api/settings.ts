import { getSettings } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const settingsQuery = queryOptions({
  queryKey: keys.settings,
  queryFn: ({ signal }) => call(getSettings, { signal }),
});
