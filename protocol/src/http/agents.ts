import { z } from 'zod';
import { nodeParams, optional, pageQuery, queryInteger, textMap, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';

export const agentStatuses = ['pending', 'approved', 'rejected'] as const;
export type AgentStatus = (typeof agentStatuses)[number];

export const agentSorts = ['name', '-name', 'last_seen_at', '-last_seen_at', 'connected_at', '-connected_at'] as const;
export type AgentSort = (typeof agentSorts)[number];

export const agentSchema = z
  .strictObject({
    node_id: z.string(),
    name: z.string().nullable().describe('name given at the first approval, which cannot be changed'),
    status: z.enum(agentStatuses),
    agent_version: z.string(),
    attributes: textMap,
    tags: textMap,
    connected: z.boolean(),
    connected_at: unixSeconds,
    updated_at: unixSeconds,
    last_seen_at: unixSeconds,
    initial_hostname: z.string(),
    initial_ip: z.string(),
    pin_source: z
      .enum(['flag', 'pinned', 'first_use', 'discovery'])
      .describe(
        'source of the orchestrator key that the agent pins; `first_use`: the agent accepted the key without verification',
      ),
  })
  .meta({ id: 'Agent' });
export type Agent = z.infer<typeof agentSchema>;

export const nodeExample = '3f8c2b0a9d7e41568c1b2a3d4e5f6071';
export const agentExample: Agent = {
  node_id: nodeExample,
  name: 'web-1',
  status: 'approved',
  agent_version: '0.1.0',
  attributes: {
    platform: 'linux',
    distro: 'debian',
    version: '12',
    arch: 'x86_64',
    init_system: 'systemd',
    hostname: 'web-1',
  },
  tags: { role: 'web' },
  connected: true,
  connected_at: 1795000000,
  updated_at: 1795000000,
  last_seen_at: 1795000030,
  initial_hostname: 'web-1',
  initial_ip: '192.0.2.17',
  pin_source: 'flag',
};

export const listAgents = route({
  id: 'listAgents',
  method: 'GET',
  path: '/agents',
  tag: 'Agents',
  summary: 'List agents',
  access: 'operator',
  query: z.strictObject({
    status: z.enum(agentStatuses).optional(),
    filter: z.string().max(2048).optional().describe('selector of the agents; the empty selector matches all'),
    q: z.string().max(256).optional().describe('text that the name or the hostname contains'),
    sort: z
      .enum(agentSorts)
      .optional()
      .describe('sort key; `-` reverses the order, and agents without a name come last'),
    limit: queryInteger(100_000)
      .optional()
      .describe('maximum number of agents; values above 100000 are read as 100000; default: all'),
    offset: pageQuery(0, 0).offset,
  }),
  paged: true,
  answers: { 200: z.array(agentSchema) },
  errors: ['selector_invalid'],
  example: { query: { filter: 'role=web' }, answer: [agentExample] },
});

export const getAgent = route({
  id: 'getAgent',
  method: 'GET',
  path: '/agents/{node_id}',
  tag: 'Agents',
  summary: 'Show an agent',
  access: 'operator',
  params: nodeParams,
  answers: { 200: agentSchema },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, answer: agentExample },
});

export const setAgentStatus = route({
  id: 'setAgentStatus',
  method: 'POST',
  path: '/agents/{node_id}',
  tag: 'Agents',
  summary: 'Approve or reject an agent',
  description:
    'The first approval gives the agent its name. Rejection closes the link of the agent and cancels its operations; if the agent is approved again, it keeps its name. Setting the current status again has no effect.',
  access: 'operator',
  params: nodeParams,
  body: z.strictObject({ status: z.enum(['approved', 'rejected']), name: optional(z.string()) }),
  answers: { 200: agentSchema },
  errors: ['agent_not_found', 'name_required', 'name_taken', 'agent_named', 'agent_changed'],
  example: { params: { node_id: nodeExample }, body: { status: 'approved', name: 'web-1' }, answer: agentExample },
});

export const removeAgent = route({
  id: 'removeAgent',
  method: 'DELETE',
  path: '/agents/{node_id}',
  tag: 'Agents',
  summary: 'Remove a rejected agent',
  access: 'operator',
  params: nodeParams,
  answers: { 204: null },
  errors: ['agent_not_found', 'agent_not_rejected'],
  example: { params: { node_id: nodeExample } },
});

export const getAttributes = route({
  id: 'getAttributes',
  method: 'GET',
  path: '/agents/{node_id}/attributes',
  tag: 'Agents',
  summary: 'Show the attributes of an agent',
  access: 'operator',
  params: nodeParams,
  answers: { 200: textMap },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, answer: agentExample.attributes },
});

export const matchSelector = route({
  id: 'matchSelector',
  method: 'POST',
  path: '/selectors/matches',
  tag: 'Agents',
  summary: 'List the approved agents that a selector matches',
  access: 'operator',
  body: z.strictObject({
    selector: z.string().max(2048),
    never_applied: optional(
      z
        .boolean()
        .describe(
          '`true` matches only agents without a successful apply; the empty selector, which otherwise matches none, then matches all of them',
        ),
    ),
  }),
  answers: { 200: z.strictObject({ matches: z.array(z.string()) }) },
  errors: ['selector_invalid'],
  example: { body: { selector: 'role=web' }, answer: { matches: [nodeExample] } },
});
