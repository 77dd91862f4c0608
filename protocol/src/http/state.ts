import { z } from 'zod';
import { nodeExample } from './agents.ts';
import { nodeParams, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operationId } from './operations.ts';

const stateEntry = z.strictObject({
  module: z.string(),
  id: z.string().nullable(),
  type: z.string(),
  identity: z.string(),
  operation_id: z.string(),
  since: unixSeconds,
  reason: z.string().nullable().describe('shortened message; the operation has the whole message'),
});
export const stateSchema = z
  .strictObject({
    node_id: z.string(),
    applied: z.array(stateEntry).describe('resources that were applied as declared, or kept from an earlier apply'),
    pending_removals: z.array(stateEntry).describe('resources that are no longer desired but still present'),
    unapplied: z.array(stateEntry).describe('resources that the last apply failed to apply'),
    snapshot_operation_id: z.string().nullable().describe('last successful apply, against which drift is measured'),
    updated_at: unixSeconds,
  })
  .meta({ id: 'State' });
export type State = z.infer<typeof stateSchema>;

export const getState = route({
  id: 'getState',
  method: 'GET',
  path: '/agents/{node_id}/state',
  tag: 'State',
  summary: 'Show the applied state of the machine',
  access: 'operator',
  params: nodeParams,
  answers: { 200: stateSchema },
  errors: ['agent_not_found'],
  example: {
    params: { node_id: nodeExample },
    answer: {
      node_id: nodeExample,
      applied: [
        {
          module: 'motd',
          id: 'motd',
          type: 'file-unix',
          identity: '/etc/motd',
          operation_id: operationId,
          since: 1795000101,
          reason: null,
        },
      ],
      pending_removals: [],
      unapplied: [],
      snapshot_operation_id: operationId,
      updated_at: 1795000101,
    },
  },
});
