import { z } from 'zod';
import { fieldChangeSchema, resourceActions, summarySchema } from '../operation/operation.ts';
import { nodeExample } from './agents.ts';
import { pageQuery, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { acceptanceExample, acceptanceSchema, driftExample } from './drift.ts';
import { operationId } from './operations.ts';

/** Reasons why an agent is not in its desired state, worst first. */
export const offReasons = ['apply_failed', 'drifted', 'drift_failed', 'unapplied', 'pending_removals'] as const;
export type OffReason = (typeof offReasons)[number];

/** Maximum number of resources to list for each reason, and maximum number of changes for each resource. */
export const maxExamples = 3;
export const maxExampleChanges = 3;
/** Maximum length of each string in these resources, in characters. */
export const maxExampleText = 200;

export const offAgentSchema = z
  .strictObject({
    node_id: z.string(),
    name: z.string().nullable(),
    connected: z.boolean(),
    last_seen_at: unixSeconds,
    reasons: z
      .array(z.enum(offReasons))
      .describe('reasons, worst first; empty if all drift was accepted, or if the agent is only outdated'),
    drift: z
      .array(
        z.strictObject({
          drift_id: z.string().describe('newest check that found the drift; `GET /drift/{drift_id}` has the resources'),
          assignment: z
            .string()
            .nullable()
            .describe(
              'audit assignment from which the agent has drifted, which no apply repairs; null for drift from applied state',
            ),
          since: unixSeconds,
          checked_at: unixSeconds,
          summary: summarySchema,
          resources: z.number().int().describe('number of resources that drifted'),
          examples: z
            .array(
              z.strictObject({
                type: z.string(),
                identity: z.string(),
                action: z.enum(resourceActions).describe('what an apply would do; `none` if unknown'),
                changes: z.array(fieldChangeSchema).max(maxExampleChanges),
              }),
            )
            .max(maxExamples)
            .describe(
              'first resources that drifted, with shortened texts, or only with names of fields if the record is large; fewer if the page would be too large',
            ),
          accepted: acceptanceSchema.nullable(),
        }),
      )
      .describe('drift from applied state, then drift from audit assignments by name'),
    failed_check: z
      .strictObject({ drift_id: z.string(), checked_at: unixSeconds, error: z.string().nullable() })
      .nullable()
      .describe('newest check, if it failed'),
    failed_operation: z
      .strictObject({
        operation_id: z.string(),
        status: z.enum(['failed', 'interrupted', 'expired']),
        finished_at: unixSeconds.nullable(),
        error: z.string().nullable(),
        summary: summarySchema.nullable(),
        run_id: z.string().nullable(),
      })
      .nullable()
      .describe('newest apply that has ended, if it failed, was interrupted, or expired'),
    unapplied: z.number().int().describe('number of resources that the last apply failed to apply'),
    pending_removals: z.number().int().describe('number of resources that are no longer desired but still present'),
    unfinished: z
      .array(
        z.strictObject({
          state: z.enum(['unapplied', 'pending_removal']),
          type: z.string(),
          identity: z.string(),
          reason: z.string().nullable(),
        }),
      )
      .max(2 * maxExamples)
      .describe('first resources of each state, with shortened texts; fewer if the page would be too large'),
    modules: z.array(z.string()).describe('modules that declare the applied and desired resources'),
    outdated: z
      .strictObject({
        modules: z.number().int().describe('number of applied modules that have a newer revision'),
        examples: z
          .array(
            z.strictObject({
              module: z.string(),
              revision: z.number().int().describe('revision that was last applied'),
              newest: z.number().int().describe('newest revision'),
            }),
          )
          .max(maxExamples)
          .describe('first of these modules, by name'),
      })
      .optional()
      .describe('applied modules that have a newer revision; absent if there are none'),
  })
  .meta({ id: 'OffAgent' });
export type OffAgent = z.infer<typeof offAgentSchema>;

export const listReconcile = route({
  id: 'listReconcile',
  method: 'GET',
  path: '/reconcile',
  tag: 'Fleet',
  summary: 'List the approved agents that are not in their desired state, worst first',
  description:
    'Omits agents without a reason: those whose drift has all been accepted, and those that are only outdated. The query parameters include them.',
  access: 'operator',
  query: z.strictObject({
    ...pageQuery(50, 500),
    filter: z.string().max(2048).optional().describe('selector of the agents; the empty selector matches all'),
    agent: z.string().max(64).optional().describe('lists only the agent with this node id or name'),
    reason: z.enum(offReasons).optional().describe('lists only agents with this reason'),
    include_accepted: z
      .enum(['true', 'false'])
      .optional()
      .describe('`true` includes agents whose drift has all been accepted, after the others'),
    include_outdated: z
      .enum(['true', 'false'])
      .optional()
      .describe('`true` includes agents that are only outdated: an applied module has a newer revision'),
  }),
  paged: true,
  answers: { 200: z.array(offAgentSchema) },
  errors: ['selector_invalid'],
  example: {
    query: { filter: 'role=web' },
    answer: [
      {
        node_id: nodeExample,
        name: 'web-1',
        connected: true,
        last_seen_at: 1795000290,
        reasons: ['apply_failed', 'drifted', 'unapplied'],
        drift: [
          {
            drift_id: driftExample.drift_id,
            assignment: null,
            since: 1794990000,
            checked_at: driftExample.checked_at,
            summary: driftExample.summary,
            resources: 1,
            examples: [
              {
                type: 'file-unix',
                identity: '/etc/motd',
                action: 'update',
                changes: [{ field: 'mode', from: '0666', to: '0644' }],
              },
            ],
            accepted: null,
          },
          {
            drift_id: '01KAGZ6R3E5F6G7H8J9K0M1N2Q',
            assignment: 'hardening',
            since: 1794990000,
            checked_at: driftExample.checked_at,
            summary: driftExample.summary,
            resources: 1,
            examples: [
              {
                type: 'sysctl',
                identity: 'net.ipv4.ip_forward',
                action: 'update',
                changes: [{ field: 'value', from: '1', to: '0' }],
              },
            ],
            accepted: acceptanceExample,
          },
        ],
        failed_check: null,
        failed_operation: {
          operation_id: operationId,
          status: 'failed',
          finished_at: 1795000100,
          error: null,
          summary: { total: 3, unchanged: 1, changed: 1, removed: 0, failed: 1, skipped: 0 },
          run_id: null,
        },
        unapplied: 1,
        pending_removals: 0,
        unfinished: [{ state: 'unapplied', type: 'service', identity: 'nginx', reason: 'the unit failed to start' }],
        modules: ['motd'],
        outdated: { modules: 1, examples: [{ module: 'motd', revision: 3, newest: 4 }] },
      },
    ],
  },
});
