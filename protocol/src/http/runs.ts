import { z } from 'zod';
import { summarySchema } from '../operation.ts';
import { nodeExample } from './agents.ts';
import { entryExample, operationId } from './operations.ts';
import { nameParams, optional, queryInteger, route, unixSeconds } from './route.ts';

export const runSchema = z
  .strictObject({
    run_id: z.string(),
    assignment: z.string().nullable(),
    kind: z.enum(['apply', 'plan']),
    status: z.enum(['running', 'succeeded', 'failed', 'halted', 'cancelled']),
    started_at: unixSeconds,
    finished_at: unixSeconds.nullable(),
    requested_by: z.string(),
    results: z.array(
      z.strictObject({
        node_id: z.string(),
        name: z.string().nullable(),
        operation_id: z.string().nullable(),
        status: z.string(),
        error: z.string().nullable(),
        summary: summarySchema.nullable(),
      }),
    ),
  })
  .meta({ id: 'Run' });
export type Run = z.infer<typeof runSchema>;
const runExample: Run = {
  run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P',
  assignment: 'base',
  kind: 'apply',
  status: 'succeeded',
  started_at: 1795000100,
  finished_at: 1795000101,
  requested_by: '21fe31dfa154a261626bf854046fd227',
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

const fanOutBody = z.strictObject({
  offline: optional(z.enum(['report', 'queue'])).describe(
    'what becomes of agents that are not connected; default report',
  ),
  ttl: optional(z.number().int().min(1).max(31_536_000)),
});

export const applyAssignment = route({
  ...fanOut('applyAssignment', 'apply', 'Apply on every agent the assignment matches'),
  path: '/assignments/{name}/apply',
  body: fanOutBody,
  answers: { 200: runSchema, 202: runSchema },
  errors: ['assignment_not_found', 'assignment_audits'],
});

export const planAssignment = route({
  ...fanOut('planAssignment', 'plan', 'Plan on every agent the assignment matches'),
  path: '/assignments/{name}/plan',
  body: fanOutBody,
  answers: { 200: runSchema, 202: runSchema },
  errors: ['assignment_not_found'],
});

export const listRuns = route({
  id: 'listRuns',
  method: 'GET',
  path: '/runs',
  tag: 'Runs',
  summary: 'List runs, newest first, without their results',
  access: 'operator',
  query: z.strictObject({
    limit: queryInteger(500, 50).optional(),
    offset: queryInteger(Number.MAX_SAFE_INTEGER, 0).optional(),
  }),
  answers: { 200: z.array(runSchema.omit({ results: true }).meta({ id: 'RunEntry' })) },
  errors: [],
  example: { answer: [{ ...runExample, results: undefined }] },
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
