import { z } from 'zod';
import { resourceResultSchema, summarySchema } from '../operation/operation.ts';
import { nodeExample } from './agents.ts';
import { nodeParams, pageQuery, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operationId, resultExample } from './operations.ts';

export const acceptanceSchema = z
  .strictObject({
    by: z.string().describe('operator_id of the operator who accepted the drift'),
    at: unixSeconds,
    reason: z.string(),
  })
  .meta({ id: 'DriftAcceptance' });
export type DriftAcceptance = z.infer<typeof acceptanceSchema>;
export const acceptanceExample: DriftAcceptance = {
  by: '9d5ed678fe57bcca610140957afab571',
  at: 1795000260,
  reason: 'the vendor asked for it until ticket 4711 is closed',
};

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
    resources: z.array(resourceResultSchema).describe('results of the resources that have drifted'),
    error: z.string().nullable(),
    accepted: acceptanceSchema
      .nullable()
      .describe('acceptance of the drift; null if it is not accepted or there is no drift'),
  })
  .meta({ id: 'DriftRecord' });
export type DriftRecord = z.infer<typeof driftRecordSchema>;
export const driftExample: DriftRecord = {
  drift_id: '01KAGZ6R3E5F6G7H8J9K0M1N2P',
  node_id: nodeExample,
  status: 'drifted',
  trigger: 'operator',
  checked_at: 1795000200,
  snapshot_operation_id: operationId,
  summary: { total: 1, unchanged: 0, changed: 1, removed: 0, failed: 0, skipped: 0 },
  resources: [{ ...resultExample, status: 'would_change', corrective: true }],
  error: null,
  accepted: null,
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
  summary: 'List drift records of an agent, newest first',
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
  summary: 'List the newest drift record of each agent, newest first',
  access: 'operator',
  query: z.strictObject({
    ...pageQuery(50, 500),
    status: z.enum(driftStatuses).optional(),
    filter: z.string().max(2048).optional().describe('selector of the agents; the empty selector matches all'),
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
  summary: 'Show the newest drift record of an agent, or null if there is none',
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

const driftParams = z.strictObject({ drift_id: z.string() });

export const acceptDrift = route({
  id: 'acceptDrift',
  method: 'POST',
  path: '/drift/{drift_id}/accept',
  tag: 'Drift',
  summary: 'Accept drift',
  description:
    'The record must be the newest one that found drift from applied state, or from an audit assignment. Later checks that find the same ' +
    'drift, or a part of it, keep the acceptance: they raise no event, and `GET /reconcile` omits the agent. The acceptance ends when a check finds ' +
    'other drift or finds the agent in sync, after a successful apply, and with `DELETE`. An apply ' +
    'repairs accepted drift as well. Hidden values are compared in their hidden form, so a further change of such a value ' +
    'is not detected.',
  access: 'operator',
  params: driftParams,
  body: z.strictObject({ reason: z.string().trim().min(1).max(1024) }),
  answers: { 200: driftRecordSchema },
  errors: ['drift_not_found', 'not_drifted', 'drift_superseded'],
  example: {
    params: { drift_id: driftExample.drift_id },
    body: { reason: acceptanceExample.reason },
    answer: { ...driftExample, accepted: acceptanceExample },
  },
});

export const unacceptDrift = route({
  id: 'unacceptDrift',
  method: 'DELETE',
  path: '/drift/{drift_id}/accept',
  tag: 'Drift',
  summary: 'Withdraw the acceptance of drift',
  description: 'Has no effect on drift that is not accepted.',
  access: 'operator',
  params: driftParams,
  answers: { 200: driftRecordSchema },
  errors: ['drift_not_found', 'drift_superseded'],
  example: { params: { drift_id: driftExample.drift_id }, answer: driftExample },
});
