import { z } from 'zod';
import { summarySchema } from '../operation/operation.ts';
import { operationStatuses } from '../operation/operation-status.ts';
import { nodeExample } from './agents.ts';
import { nameParams, optional, pageQuery, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { entryExample, modulesField, operationId } from './operations.ts';
import { operatorId } from './operators/operators.ts';

export const runKinds = ['apply', 'plan'] as const;
export const runStatuses = ['running', 'succeeded', 'failed', 'halted', 'cancelled'] as const;

export const runSchema = z
  .strictObject({
    run_id: z.string(),
    assignment: z.string().nullable().describe('name of the assignment; null for a run on named agents'),
    kind: z.enum(runKinds),
    status: z.enum(runStatuses),
    started_at: unixSeconds,
    finished_at: unixSeconds
      .nullable()
      .describe('time at which the last operation ended; a halted or canceled run waits for its running operations'),
    requested_by: z.string(),
    results: z.array(
      z.strictObject({
        node_id: z.string(),
        name: z.string().nullable(),
        operation_id: z.string().nullable(),
        status: z.enum(operationStatuses),
        error: z.string().nullable(),
        summary: summarySchema.nullable(),
      }),
    ),
  })
  .meta({ id: 'Run' });
export type Run = z.infer<typeof runSchema>;

const agents = z.number().int().nonnegative();
export const runOutcomesSchema = z
  .strictObject({
    succeeded: agents,
    failed: agents.describe('includes operations that were interrupted or expired'),
    cancelled: agents.describe('operations that were canceled'),
    skipped: agents.describe('agents that the run did not reach before it was halted or canceled'),
    running: agents.describe('operations that have not ended'),
    waiting: agents.describe('agents that the run has not reached yet'),
  })
  .meta({ id: 'RunOutcomes', description: 'Number of agents of a run by outcome. Each agent is counted once.' });
export type RunOutcomes = z.infer<typeof runOutcomesSchema>;

export const runEntrySchema = runSchema
  .omit({ results: true })
  .extend({ outcomes: runOutcomesSchema })
  .meta({ id: 'RunEntry' });
export type RunEntry = z.infer<typeof runEntrySchema>;

const runExample: Run = {
  run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P',
  assignment: 'base',
  kind: 'apply',
  status: 'succeeded',
  started_at: 1795000100,
  finished_at: 1795000101,
  requested_by: operatorId,
  results: [
    {
      node_id: nodeExample,
      name: 'web-1',
      operation_id: operationId,
      status: 'succeeded',
      error: null,
      summary: entryExample.summary,
    },
  ],
};

const fanOut = (id: string, verb: 'apply' | 'plan', summary: string) =>
  ({
    id,
    method: 'POST',
    path: `/assignments/{name}/${verb}`,
    tag: 'Assignments',
    summary,
    access: 'operator',
    params: nameParams,
    bodyOptional: true,
    respondAsync: true,
    example: { params: { name: 'base' }, body: { offline: 'queue' }, answer: { ...runExample, kind: verb } },
  }) as const;

const agentCount = z.number().int().min(1).max(1_000_000);
const fanOutBody = z.strictObject({
  batch: optional(
    z.union([
      agentCount,
      z.string().regex(/^([1-9]\d?|100)%$/, 'must be a number of agents, or a percentage such as "25%"'),
    ]),
  ).describe(
    'maximum number of agents at the same time, as a number or as a percentage of all; when one ends, the next one starts',
  ),
  max_failures: optional(z.number().int().min(0).max(1_000_000)).describe(
    'halt the run after more failures than this, without trying the remaining agents; default: no limit',
  ),
  canary: optional(agentCount).describe(
    'run on this many agents first, and continue only if all of them succeed; otherwise, halt the run',
  ),
  offline: optional(z.enum(['report', 'queue'])).describe(
    'whether offline agents are reported as failed (`report`, the default) or their operations are queued (`queue`)',
  ),
  ttl: optional(z.number().int().min(1).max(31_536_000)).describe('seconds to wait for queued agents; default: 86400'),
  plan_run_id: optional(z.string().max(64)).describe(
    'plan run of this assignment; each agent applies its plan exactly, or not at all if something has changed since',
  ),
});

export const applyAssignment = route({
  ...fanOut('applyAssignment', 'apply', 'Apply an assignment to all agents that it matches'),
  path: '/assignments/{name}/apply',
  body: fanOutBody,
  answers: { 200: runSchema, 202: runSchema },
  errors: ['assignment_not_found', 'assignment_audits', 'run_not_found', 'plan_stale'],
});

export const planAssignment = route({
  ...fanOut('planAssignment', 'plan', 'Plan an assignment on all agents that it matches'),
  path: '/assignments/{name}/plan',
  body: fanOutBody,
  answers: { 200: runSchema, 202: runSchema },
  errors: ['assignment_not_found', 'run_not_found'],
});

export const maxRunAgents = 20_000;

export const startRun = route({
  id: 'startRun',
  method: 'POST',
  path: '/runs',
  tag: 'Runs',
  summary: 'Plan or apply on named agents',
  description:
    'Each agent applies or plans its assignments and then `modules`, as with `POST /agents/{node_id}/apply`. The run continues without the client.',
  access: 'operator',
  respondAsync: true,
  body: fanOutBody.extend({
    kind: z.enum(runKinds),
    node_ids: z.array(z.string().max(64)).min(1).max(maxRunAgents).describe('agents in the order in which they start'),
    modules: modulesField,
    plan_run_id: optional(z.string().max(64)).describe(
      'plan run of named agents with the same modules; each agent applies its plan exactly, or not at all if something has changed since',
    ),
  }),
  answers: { 200: runSchema, 202: runSchema },
  errors: ['agent_not_found', 'module_not_found', 'run_not_found', 'plan_stale'],
  example: {
    body: { kind: 'apply', node_ids: [nodeExample], modules: ['motd'], canary: 1 },
    answer: { ...runExample, assignment: null },
  },
});

export const listRuns = route({
  id: 'listRuns',
  method: 'GET',
  path: '/runs',
  paged: true,
  tag: 'Runs',
  summary: 'List runs, newest first, without their results',
  access: 'operator',
  query: z.strictObject({
    status: z.enum(runStatuses).optional(),
    kind: z.enum(runKinds).optional(),
    assignment: z.string().max(128).optional(),
    latest: z
      .enum(['true', 'false'])
      .optional()
      .describe('`true` lists only the newest run of each assignment among the runs that match the other filters'),
    ...pageQuery(50, 500),
  }),
  answers: { 200: z.array(runEntrySchema) },
  errors: [],
  example: {
    answer: [
      {
        ...{ ...runExample, results: undefined },
        outcomes: { succeeded: 18, failed: 1, cancelled: 0, skipped: 1, running: 0, waiting: 0 },
      },
    ],
  },
});

export const getRun = route({
  id: 'getRun',
  method: 'GET',
  path: '/runs/{run_id}',
  tag: 'Runs',
  summary: 'Show a run with the outcome of each agent',
  access: 'operator',
  params: z.strictObject({ run_id: z.string() }),
  answers: { 200: runSchema },
  errors: ['run_not_found'],
  example: { params: { run_id: runExample.run_id }, answer: runExample },
});

export const cancelRun = route({
  id: 'cancelRun',
  method: 'POST',
  path: '/runs/{run_id}/cancel',
  tag: 'Runs',
  summary: 'Cancel a run that has not ended',
  description:
    'Agents that have not started are skipped, and running operations end after their current resource. 200 if no operation is running, otherwise 202.',
  access: 'operator',
  params: z.strictObject({ run_id: z.string() }),
  answers: { 200: runSchema, 202: runSchema },
  errors: ['run_not_found', 'run_finished'],
  example: { params: { run_id: runExample.run_id }, answer: { ...runExample, status: 'cancelled' } },
});
