import { matchSelector } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const matchesQuery = (selector: string) =>
  queryOptions({
    queryKey: keys.matches(selector),
    queryFn: async ({ signal }) => (await call(matchSelector, { body: { selector }, signal })).matches,
    // Each typed selector has its own key, so unused results are removed soon.
    gcTime: 60_000,
    retry: false,
  });
