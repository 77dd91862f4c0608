import { latestSample, listSamples } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call, serverClock } from './client.ts';
import { keys } from './query-keys.ts';

/** Samples cause no events, so these queries poll while the page is visible. */
const pollMs = 60_000;

/** Returns the time in Unix seconds by the orchestrator's clock, which also timestamps the samples. */
const now = (): number => Math.floor(serverClock.now() / 1000);

/**
 * @param since seconds before now
 * @param step bucket size in seconds
 */
export const samplesQuery = (node_id: string, since: number, step: number) =>
  queryOptions({
    queryKey: keys.metrics(node_id, since, step),
    queryFn: async ({ signal }) => {
      const from = now() - since;
      const answer = await call(listSamples, {
        params: { node_id },
        query: { since: String(from), step: String(step) } as never,
        signal,
      });
      return { at: now(), samples: answer?.samples ?? [] };
    },
    structuralSharing: false,
    refetchInterval: pollMs,
    placeholderData: (before) => before,
  });

/** The newest sample, or null if there is none. */
export const latestSampleQuery = (node_id: string) =>
  queryOptions({
    queryKey: keys.metrics(node_id, 'latest'),
    queryFn: async ({ signal }) => (await call(latestSample, { params: { node_id }, signal })) ?? null,
    refetchInterval: pollMs,
  });
