import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Sample } from '@muster/protocol';
import type { Metrics } from '../../domain/fleet/metrics.ts';
import { type Handlers, JsonBody, Reply } from '../server/handlers.ts';

export function metricsHandlers(metrics: Metrics) {
  return {
    listSamples: async ({ params, query }) => {
      const found = await metrics.list(params.node_id, query);
      // With a limit of 0, an empty list does not show whether the agent has samples.
      if (found.samples.length === 0 && query.limit !== 0) return new Reply(204, undefined);
      const { node_id, samples } = found;
      return jsonInTurns<typeof found, Sample>(
        `{"node_id":${JSON.stringify(node_id)},"samples":[`,
        samples,
        (sample) => JSON.stringify(sample),
        ']}',
      );
    },
    latestSample: async ({ params }) => (await metrics.latest(params.node_id)) ?? new Reply(204, undefined),
    latestSamples: async ({ query }) => {
      const found = Object.entries(await metrics.latestOf(query.filter));
      return jsonInTurns<Record<string, Sample>, [string, Sample]>(
        '{',
        found,
        ([id, sample]) => `"${id}":${JSON.stringify(sample)}`,
        '}',
      );
    },
  } satisfies Partial<Handlers>;
}

/**
 * Maximum number of samples written per event-loop turn. Writing 100,000 samples would block the event loop for 0.2 s.
 */
const itemsPerTurn = 2000;

async function jsonInTurns<T, I>(
  before: string,
  items: readonly I[],
  write: (item: I) => string,
  after: string,
): Promise<JsonBody<T>> {
  let text = before;
  for (let start = 0; start < items.length; start += itemsPerTurn) {
    if (start > 0) {
      text += ',';
      await nextTurn();
    }
    text += items
      .slice(start, start + itemsPerTurn)
      .map((item) => write(item))
      .join(',');
  }
  return new JsonBody<T>(text + after);
}
