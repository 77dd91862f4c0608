import { latestSample, listSamples } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './keys.ts';

/** No event tells of samples: the page that shows some asks once a minute, while it is in sight. */
const everyMs = 60_000;

/** @param since seconds back from now; @param step seconds of a bucket */
export const samplesQuery = (node_id: string, since: number, step: number) =>
  queryOptions({
    queryKey: keys.metrics(node_id, since, step),
    queryFn: async ({ signal }) => {
      const from = Math.floor(Date.now() / 1000) - since;
      const answer = await call(listSamples, {
        params: { node_id },
        query: { since: String(from), step: String(step) } as never,
        signal,
      });
      return { at: Math.floor(Date.now() / 1000), samples: answer?.samples ?? [] };
    },
    structuralSharing: false,
    refetchInterval: everyMs,
    placeholderData: (before) => before,
  });

/** The newest sample; null when there is none. */
export const latestSampleQuery = (node_id: string) =>
  queryOptions({
    queryKey: keys.metrics(node_id, 'latest'),
    queryFn: async ({ signal }) => (await call(latestSample, { params: { node_id }, signal })) ?? null,
    refetchInterval: everyMs,
  });
