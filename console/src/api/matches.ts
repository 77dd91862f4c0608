import { matchSelector } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

/** Ids of the approved agents that a selector matches now. */
export const matchesQuery = (selector: string) =>
  queryOptions({
    queryKey: keys.matches(selector),
    queryFn: async ({ signal }) => (await call(matchSelector, { body: { selector }, signal })).matches,
    // Every typed selector has its own key, so unused answers are removed soon.
    gcTime: 60_000,
    retry: false,
  });
