import { z } from 'zod';
import { nodeParams, optional, pageQuery, queryInteger, unixSeconds } from './fields.ts';
import { route } from './route.ts';

export const agentStatuses = ['pending', 'approved', 'rejected'] as const;
export type AgentStatus = (typeof agentStatuses)[number];

export const agentSorts = ['name', '-name', 'last_seen_at', '-last_seen_at', 'connected_at', '-connected_at'] as const;
export type AgentSort = (typeof agentSorts)[number];

const map = z.record(z.string(), z.string());

export const agentSchema = z
  .strictObject({
    node_id: z.string(),
    name: z.string().nullable().describe('given at the first approval; permanent'),
    status: z.enum(agentStatuses),
    agent_version: z.string(),
    attributes: map,
    tags: map,
    connected: z.boolean(),
    connected_at: unixSeconds,
    updated_at: unixSeconds,
    last_seen_at: unixSeconds,
    initial_hostname: z.string(),
    initial_ip: z.string(),
    pin_source: z
      .enum(['flag', 'pinned', 'first_use', 'discovery'])
      .describe('how the agent got the orchestrator’s key; with `first_use` it accepted the key unverified'),
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
    filter: z.string().max(2048).optional().describe('a selector; empty matches every agent'),
    q: z.string().max(256).optional().describe('text within names and hostnames'),
    sort: z.enum(agentSorts).optional().describe('`-` reverses the order; agents without a name come last'),
    limit: queryInteger(100_000)
      .optional()
      .describe('at most this many, all when absent; more than 100000 is read as 100000'),
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
    'The first approval gives the name. A rejected agent’s link is closed and its running work cancelled; approved again, it keeps its name. Repeating the present state changes nothing.',
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
  answers: { 200: map },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, answer: agentExample.attributes },
});

export const putTags = route({
  id: 'putTags',
  method: 'PUT',
  path: '/agents/{node_id}/tags',
  tag: 'Tags',
  summary: 'Replace all tags of an agent',
  access: 'operator',
  params: nodeParams,
  body: z.strictObject({ tags: map }),
  answers: { 204: null },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, body: { tags: { role: 'web', site: 'paris' } } },
});

const tagParams = nodeParams.extend({ key: z.string() });

export const putTag = route({
  id: 'putTag',
  method: 'PUT',
  path: '/agents/{node_id}/tags/{key}',
  tag: 'Tags',
  summary: 'Set one tag',
  access: 'operator',
  params: tagParams,
  body: z.strictObject({ value: z.string() }),
  answers: { 204: null },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample, key: 'role' }, body: { value: 'web' } },
});

export const deleteTag = route({
  id: 'deleteTag',
  method: 'DELETE',
  path: '/agents/{node_id}/tags/{key}',
  tag: 'Tags',
  summary: 'Remove one tag',
  access: 'operator',
  params: tagParams,
  answers: { 204: null },
  errors: ['agent_not_found', 'tag_not_found'],
  example: { params: { node_id: nodeExample, key: 'role' } },
});

export const listTags = route({
  id: 'listTags',
  method: 'GET',
  path: '/tags',
  tag: 'Tags',
  summary: 'List every tag key in use with its values, and the number of agents of each',
  access: 'operator',
  answers: {
    200: z
      .strictObject({
        tags: z.record(z.string(), z.array(z.string())),
        counts: z.record(z.string(), z.record(z.string(), z.number().int())).describe('agents, by key and value'),
      })
      .meta({ id: 'Tags' }),
  },
  errors: [],
  example: { answer: { tags: { role: ['db', 'web'] }, counts: { role: { db: 2, web: 12 } } } },
});

export const matchSelector = route({
  id: 'matchSelector',
  method: 'POST',
  path: '/selectors/matches',
  tag: 'Agents',
  summary: 'List the approved agents that a selector matches',
  access: 'operator',
  body: z.strictObject({ selector: z.string().max(2048) }),
  answers: { 200: z.strictObject({ matches: z.array(z.string()) }) },
  errors: ['selector_invalid'],
  example: { body: { selector: 'role=web' }, answer: { matches: [nodeExample] } },
});

const enrolmentToken = z
  .strictObject({
    id: z.string(),
    name: z.string().nullable(),
    tags: map,
    approve: z.boolean(),
    uses_left: z.number().int(),
    created_at: unixSeconds,
    created_by: z.string(),
    expires_at: unixSeconds,
    revoked_at: unixSeconds.nullable(),
  })
  .meta({ id: 'EnrolmentToken' });
const enrolmentExample = {
  id: '01KAGZ3N8V5T1Q6W9X2Y4Z7B8C',
  name: 'web-2',
  tags: { role: 'web' },
  approve: true,
  uses_left: 1,
  created_at: 1795000000,
  created_by: '21fe31dfa154a261626bf854046fd227',
  expires_at: 1795003600,
  revoked_at: null,
};

export const createEnrolmentToken = route({
  id: 'createEnrolmentToken',
  method: 'POST',
  path: '/enrolment-tokens',
  tag: 'Enrolment',
  summary: 'Create a token that enrolls an agent, with the command to paste on its machine',
  description: 'The token is shown once. A name needs a token with a single use.',
  access: 'admin',
  bodyOptional: true,
  body: z.strictObject({
    expires_in: optional(z.number().int().min(60).max(31_536_000)).describe('seconds; default 3600'),
    uses: optional(z.number().int().min(1).max(10_000)).describe('default 1'),
    name: optional(z.string()),
    tags: optional(map),
    approve: optional(z.boolean()).describe('approve at once, under `name` or the hostname; default true'),
  }),
  answers: {
    201: enrolmentToken
      .extend({
        token: z.string(),
        command: z
          .string()
          .describe('command to paste on the machine; installs the agent if possible, and connects it'),
        connect_command: z.string().describe('command for a machine where the program is installed'),
        note: z.string().nullable().describe('why `command` does not install, or another remark'),
      })
      .meta({ id: 'NewEnrolmentToken' }),
  },
  errors: ['name_taken'],
  example: {
    body: { name: 'web-2', tags: { role: 'web' } },
    answer: {
      ...enrolmentExample,
      token: 'mt_4Jq2k9wZr7',
      command: `(curl -fsSk --pinnedpubkey 'sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE=' https://orchestrator.example:4748/install/agent.sh || echo exit 1) | MUSTER_TOKEN=mt_4Jq2k9wZr7 sh -s -- --from https://orchestrator.example:4748 --pin 'sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE=' --to orchestrator.example:4747 --key ${'ab'.repeat(32)}`,
      connect_command: `MUSTER_TOKEN=mt_4Jq2k9wZr7 muster agent connect orchestrator.example:4747 --orchestrator-key ${'ab'.repeat(32)}`,
      note: null,
    },
  },
});

export const listEnrolmentTokens = route({
  id: 'listEnrolmentTokens',
  method: 'GET',
  path: '/enrolment-tokens',
  tag: 'Enrolment',
  summary: 'List enrolment tokens, without their values, newest first',
  access: 'admin',
  query: z.strictObject({
    ...pageQuery(100, 1000),
    include_ended: z
      .enum(['true', 'false'])
      .optional()
      .describe('also tokens that were used up, revoked or expired in the last 30 days'),
  }),
  paged: true,
  answers: { 200: z.array(enrolmentToken) },
  errors: [],
  example: { answer: [enrolmentExample] },
});

export const revokeEnrolmentToken = route({
  id: 'revokeEnrolmentToken',
  method: 'DELETE',
  path: '/enrolment-tokens/{id}',
  tag: 'Enrolment',
  summary: 'Revoke an enrolment token',
  access: 'admin',
  params: z.strictObject({ id: z.string() }),
  answers: { 204: null },
  errors: ['enrolment_token_not_found'],
  example: { params: { id: enrolmentExample.id } },
});
