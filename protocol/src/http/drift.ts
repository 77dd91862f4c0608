import { z } from 'zod';
import { resourceResultSchema, summarySchema } from '../operation.ts';
import { nodeExample } from './agents.ts';
import { operationId, resultExample } from './operations.ts';
import { nodeParams, pageQuery, route, unixSeconds } from './route.ts';

export const driftStatuses = ['in_sync', 'drifted', 'failed', 'cancelled'] as const;
export const driftRecordSchema = z
  .strictObject({
    drift_id: z.string(),
    node_id: z.string(),
    status: z.enum(driftStatuses),
    trigger: z.enum(['operator', 'schedule', 'watch', 'audit']),
    checked_at: unixSeconds,
    snapshot_operation_id: z.string(),
    summary: summarySchema,
    resources: z.array(resourceResultSchema).describe('those that drifted'),
    error: z.string().nullable(),
  })
  .meta({ id: 'DriftRecord' });
export type DriftRecord = z.infer<typeof driftRecordSchema>;
const driftExample: DriftRecord = {
  drift_id: '01KAGZ6R3E5F6G7H8J9K0M1N2P',
  node_id: nodeExample,
  status: 'drifted',
  trigger: 'operator',
  checked_at: 1795000200,
  snapshot_operation_id: operationId,
  summary: { total: 1, unchanged: 0, changed: 1, removed: 0, failed: 0, skipped: 0 },
  resources: [{ ...resultExample, status: 'would_change', corrective: true }],
  error: null,
};

export const checkDrift = route({
  id: 'checkDrift',
  method: 'POST',
  path: '/agents/{node_id}/drift',
  tag: 'Drift',
  summary: 'Compare the machine with the last successful apply',
  access: 'operator',
  params: nodeParams,
  answers: { 200: driftRecordSchema },
  errors: ['agent_not_found', 'agent_not_approved', 'nothing_applied', 'agent_not_connected', 'agent_timeout'],
  example: { params: { node_id: nodeExample }, answer: driftExample },
});

export const listDrift = route({
  id: 'listDrift',
  method: 'GET',
  path: '/agents/{node_id}/drift',
  tag: 'Drift',
  summary: 'Drift records of an agent, newest first',
  access: 'operator',
  params: nodeParams,
  query: z.strictObject({ ...pageQuery(50, 500), status: z.enum(driftStatuses).optional() }),
  paged: true,
  answers: { 200: z.array(driftRecordSchema) },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, answer: [driftExample] },
});

export const listLatestDrift = route({
  id: 'listLatestDrift',
  method: 'GET',
  path: '/drift',
  tag: 'Drift',
  summary: 'The newest drift record of each agent, the newest of them first',
  access: 'operator',
  query: z.strictObject({
    ...pageQuery(50, 500),
    status: z.enum(driftStatuses).optional(),
    filter: z.string().max(2048).optional().describe('a selector; empty matches every agent'),
  }),
  paged: true,
  answers: { 200: z.array(driftRecordSchema) },
  errors: ['selector_invalid'],
  example: { query: { status: 'drifted' }, answer: [driftExample] },
});

export const latestDrift = route({
  id: 'latestDrift',
  method: 'GET',
  path: '/agents/{node_id}/drift/latest',
  tag: 'Drift',
  summary: 'The newest drift record of an agent, or null',
  access: 'operator',
  params: nodeParams,
  answers: { 200: driftRecordSchema.nullable() },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, answer: driftExample },
});

export const getDrift = route({
  id: 'getDrift',
  method: 'GET',
  path: '/drift/{drift_id}',
  tag: 'Drift',
  summary: 'Show a drift record',
  access: 'operator',
  params: z.strictObject({ drift_id: z.string() }),
  answers: { 200: driftRecordSchema },
  errors: ['drift_not_found'],
  example: { params: { drift_id: driftExample.drift_id }, answer: driftExample },
});
