import type { Metrics } from '../../domain/metrics.ts';
import { type Handlers, Reply } from '../handlers.ts';

export function metricsHandlers(metrics: Metrics) {
  return {
    listSamples: async ({ params, query }) => {
      const found = await metrics.list(params.node_id, query);
      // Who asks for none of them is not told that there are none.
      return found.samples.length === 0 && query.limit !== 0 ? new Reply(204, undefined) : found;
    },
    latestSample: async ({ params }) => (await metrics.latest(params.node_id)) ?? new Reply(204, undefined),
    latestSamples: ({ query }) => metrics.latestOf(query.filter),
  } satisfies Partial<Handlers>;
}
