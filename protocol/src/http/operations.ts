import { z } from 'zod';
import { resourceResultSchema, summarySchema } from '../operation/operation.ts';
import { operationStatuses } from '../operation/operation-status.ts';
import { nodeExample } from './agents.ts';
import { listQuery, nodeParams, optional, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { filesOf, moduleBodyLimit } from './modules.ts';
import { operatorId } from './operators/operators.ts';

const operationFields = {
  operation_id: z.string(),
  node_id: z.string(),
  kind: z.enum(['apply', 'plan']),
  status: z.enum(operationStatuses),
  modules: z.array(z.string()),
  requested_by: z.string(),
  run_id: z.string().nullable(),
  plan_id: z.string().nullable(),
  created_at: unixSeconds,
  started_at: unixSeconds.nullable(),
  finished_at: unixSeconds.nullable(),
  summary: summarySchema,
  error: z.string().nullable(),
};

export const operationEntrySchema = z.strictObject(operationFields).meta({ id: 'OperationEntry' });
export type OperationEntry = z.infer<typeof operationEntrySchema>;
export const operationSchema = z
  .strictObject({ ...operationFields, resources: z.array(resourceResultSchema) })
  .meta({ id: 'Operation' });
export type Operation = z.infer<typeof operationSchema>;

export const operationId = '01KAGZ4D3E5F6G7H8J9K0M1N2P';
export const entryExample: OperationEntry = {
  operation_id: operationId,
  node_id: nodeExample,
  kind: 'apply',
  status: 'succeeded',
  modules: ['motd'],
  requested_by: operatorId,
  run_id: null,
  plan_id: null,
  created_at: 1795000100,
  started_at: 1795000100,
  finished_at: 1795000101,
  summary: { total: 1, unchanged: 0, changed: 1, removed: 0, failed: 0, skipped: 0 },
  error: null,
};
export const resultExample = {
  module: 'motd',
  id: 'motd',
  type: 'file-unix',
  identity: '/etc/motd',
  action: 'update' as const,
  status: 'changed' as const,
  changes: [{ field: 'content', from: 'sha256:2c26b46b68ff', to: 'sha256:fcde2b2edba5' }],
  diff: '--- /etc/motd\n+++ /etc/motd\n@@ -1 +1 @@\n-Hello\n+Welcome\n',
  triggered_by: [],
  corrective: false,
  message: null,
  duration_ms: 2,
  sensitive: false,
};
const operationExample: Operation = { ...entryExample, resources: [resultExample] };

export const modulesField = z
  .array(z.string().max(128))
  .max(256)
  .describe('modules in addition to those of assignments; may be empty');

export const applyAgent = route({
  id: 'applyAgent',
  method: 'POST',
  path: '/agents/{node_id}/apply',
  tag: 'State',
  summary: 'Bring an agent to its desired state',
  description:
    'The desired set has the modules of the agent’s assignments in the mode `enforce`, followed by `modules`. Resources of earlier applies that are no longer desired are removed last.',
  access: 'operator',
  params: nodeParams,
  body: z.strictObject({
    modules: modulesField,
    plan_id: optional(z.string().max(64)).describe(
      'plan of this agent that succeeded; it is applied exactly, or not at all if something has changed since',
    ),
    ttl: optional(z.number().int().min(1).max(31_536_000)).describe('seconds to wait for the agent; default: 86400'),
    offline: optional(z.enum(['report', 'queue'])).describe(
      'with `respond-async`, whether the request is refused (`report`) or queued (`queue`, the default) if the agent is offline; other requests are then always refused',
    ),
  }),
  answers: { 200: operationSchema, 202: operationSchema },
  errors: [
    'module_not_found',
    'module_unresolved',
    'module_conflict',
    'agent_not_found',
    'agent_not_approved',
    'operation_not_found',
    'plan_stale',
    'agent_not_connected',
  ],
  respondAsync: true,
  example: { params: { node_id: nodeExample }, body: { modules: ['motd'] }, answer: operationExample },
});

export const planAgent = route({
  id: 'planAgent',
  method: 'POST',
  path: '/agents/{node_id}/plan',
  tag: 'State',
  summary: 'Show what an apply would do, without changing anything',
  access: 'operator',
  params: nodeParams,
  body: z.strictObject({
    modules: modulesField,
    draft: optional(z.strictObject({ content: z.string().describe('YAML'), files_of: filesOf })).describe(
      'module that is not stored, planned in place of the stored module with its name; its plan can be applied only after exactly this text has been stored',
    ),
    ttl: optional(z.number().int().min(1).max(31_536_000)),
  }),
  bodyLimit: moduleBodyLimit,
  answers: { 200: operationSchema, 202: operationSchema },
  errors: [
    'module_invalid',
    'module_not_found',
    'module_unresolved',
    'module_conflict',
    'agent_not_found',
    'agent_not_approved',
    'agent_not_connected',
  ],
  respondAsync: true,
  example: {
    params: { node_id: nodeExample },
    body: { modules: ['motd'] },
    answer: { ...operationExample, kind: 'plan', resources: [{ ...resultExample, status: 'would_change' }] },
  },
});

const operationsQuery = z.strictObject({
  ...listQuery(50, 500),
  cursor: z.string().max(64).optional(),
  status: z.enum(operationStatuses).optional(),
  kind: z.enum(['apply', 'plan']).optional(),
});
const operationsPage = z
  .strictObject({
    operations: z.array(operationEntrySchema),
    limit: z.number().int(),
    offset: z.number().int(),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'OperationsPage' });
const pageExample = { operations: [entryExample], limit: 50, offset: 0, has_more: false, next_cursor: null };

export const listAgentOperations = route({
  id: 'listAgentOperations',
  method: 'GET',
  path: '/agents/{node_id}/state/operations',
  tag: 'State',
  summary: 'List the operations of an agent, newest first',
  access: 'operator',
  params: nodeParams,
  query: operationsQuery,
  answers: { 200: operationsPage },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, answer: pageExample },
});

const outputSchema = z
  .strictObject({
    operation_id: z.string(),
    output: z.record(
      z.string(),
      z.strictObject({
        stdout: z.string(),
        stderr: z.string(),
        exit_code: z.number().int().nullable(),
        truncated: z.boolean(),
        running: z.literal(true).optional().describe('present while the program runs; the output is then incomplete'),
      }),
    ),
  })
  .meta({ id: 'OperationOutput' });
export type OperationOutput = z.infer<typeof outputSchema>;

export const getOperationOutput = route({
  id: 'getOperationOutput',
  method: 'GET',
  path: '/agents/{node_id}/state/operations/{operation_id}/output',
  tag: 'State',
  summary: 'Show what the scripts of an operation printed',
  access: 'operator',
  params: nodeParams.extend({ operation_id: z.string() }),
  description:
    'Maps `module/identity` to output. While a script runs, new output appears within about a second, ' +
    'with `running`. After the script ends, its whole output is available, up to a limit. `event: output` of `GET /events` announces new output.',
  answers: { 200: outputSchema },
  errors: ['agent_not_found', 'operation_not_found'],
  example: {
    params: { node_id: nodeExample, operation_id: operationId },
    answer: {
      operation_id: operationId,
      output: { 'site/deploy': { stdout: 'deployed\n', stderr: '', exit_code: 0, truncated: false } },
    },
  },
});

export const listOperations = route({
  id: 'listOperations',
  method: 'GET',
  path: '/state/operations',
  tag: 'State',
  summary: 'List the operations of all agents, newest first',
  access: 'operator',
  query: operationsQuery.extend({ agent: z.string().max(64).optional().describe('node id or name of the agent') }),
  answers: { 200: operationsPage },
  errors: [],
  example: { answer: pageExample },
});

const operationParams = z.strictObject({ operation_id: z.string() });

export const getOperation = route({
  id: 'getOperation',
  method: 'GET',
  path: '/state/operations/{operation_id}',
  tag: 'State',
  summary: 'Show an operation with its resources',
  access: 'operator',
  params: operationParams,
  answers: { 200: operationSchema },
  errors: ['operation_not_found'],
  example: { params: { operation_id: operationId }, answer: operationExample },
});

export const cancelOperation = route({
  id: 'cancelOperation',
  method: 'POST',
  path: '/state/operations/{operation_id}/cancel',
  tag: 'State',
  summary: 'Cancel an operation that has not ended',
  description: 'A queued operation ends immediately, and a running operation after its current resource.',
  access: 'operator',
  params: operationParams,
  answers: { 202: operationSchema },
  errors: ['operation_not_found', 'operation_finished'],
  example: { params: { operation_id: operationId }, answer: { ...operationExample, status: 'cancelled' } },
});
