import { z } from 'zod';
import { type Sample, sampleSchema } from '../metrics.ts';
import { nodeExample } from './agents.ts';
import { nodeParams, queryInteger } from './definition/fields.ts';
import { route } from './definition/route.ts';

/** Maximum number of samples per response. */
export const maxSamples = 100_000;

export const sampleExample: Sample = {
  collected_at: 1795000000,
  cpu_usage: 12.5,
  memory_total: 8589934592,
  memory_used: 2147483648,
  swap_used: 0,
  disk_total: 107374182400,
  disk_used: 32212254720,
  load1: 0.42,
  net_rx_bytes: 123456789,
  net_tx_bytes: 98765432,
  processes: 143,
  uptime: 864000,
};

export const listSamples = route({
  id: 'listSamples',
  method: 'GET',
  path: '/agents/{node_id}/metrics',
  tag: 'Metrics',
  summary: 'List samples of an agent, oldest first',
  description:
    '204 if there are no samples in the period. With `step`, each sample is the average of a bucket, and `collected_at` is the beginning of the bucket, a multiple of `step`. The counters `uptime`, `net_rx_bytes`, and `net_tx_bytes` have their last value in the bucket. Null values are ignored; a measure is null if all of its values in the bucket are null. The orchestrator keeps only the first sample that it received for a second. Samples of a removed agent are not shown, and are deleted at the same age as other samples.',
  access: 'operator',
  params: nodeParams,
  query: z.strictObject({
    since: queryInteger(Number.MAX_SAFE_INTEGER)
      .optional()
      .describe('start of the period, Unix seconds; default: the oldest sample'),
    limit: queryInteger(maxSamples, maxSamples)
      .optional()
      .describe('maximum number of samples; older samples are omitted'),
    step: queryInteger(31_536_000)
      .refine((value) => value >= 1, 'must be at least 1')
      .optional()
      .describe('length of a bucket in seconds; default: no averages'),
  }),
  answers: { 200: z.strictObject({ node_id: z.string(), samples: z.array(sampleSchema) }), 204: null },
  errors: ['agent_not_found', 'storage_unavailable'],
  example: {
    params: { node_id: nodeExample },
    query: { since: '1794999000', step: '300' },
    answer: { node_id: nodeExample, samples: [sampleExample] },
  },
});

export const latestSample = route({
  id: 'latestSample',
  method: 'GET',
  path: '/agents/{node_id}/metrics/latest',
  tag: 'Metrics',
  summary: 'Show the newest sample of an agent',
  description: '204 if there is no sample.',
  access: 'operator',
  params: nodeParams,
  answers: { 200: sampleSchema, 204: null },
  errors: ['agent_not_found', 'storage_unavailable'],
  example: { params: { node_id: nodeExample }, answer: sampleExample },
});

export const latestSamples = route({
  id: 'latestSamples',
  method: 'GET',
  path: '/metrics/latest',
  tag: 'Metrics',
  summary: 'Show the newest sample of each agent',
  description: 'Maps node ids to samples. Omits agents without a sample.',
  access: 'operator',
  query: z.strictObject({
    filter: z.string().max(2048).optional().describe('selector of the agents; the empty selector matches all'),
  }),
  answers: { 200: z.record(z.string(), sampleSchema) },
  errors: ['selector_invalid', 'storage_unavailable'],
  example: { query: { filter: 'role=web' }, answer: { [nodeExample]: sampleExample } },
});
