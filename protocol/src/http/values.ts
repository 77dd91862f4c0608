import { z } from 'zod';
import { nodeExample } from './agents.ts';
import { nodeParams, pageQuery } from './definition/fields.ts';
import { route } from './definition/route.ts';

const layerSchema = z
  .strictObject({
    from: z
      .enum(['assignment', 'requires', 'variant', 'default'])
      .describe('`requires`: set under `with` by a module that requires this module'),
    name: z.string().nullable().describe('name of the assignment, or of the module that requires this module'),
    precedence: z
      .number()
      .int()
      .nullable()
      .describe('null for the value in the declaration, which has the lowest precedence'),
    value: z.json(),
  })
  .meta({ id: 'ValueLayer' });
export type ValueLayer = z.infer<typeof layerSchema>;

const agentValueSchema = z
  .strictObject({
    module: z.string(),
    parameter: z.string(),
    merge: z.enum(['replace', 'deep', 'append', 'unique']),
    value: z.json().describe('null if the parameter has no value or has an error'),
    layers: z
      .array(layerSchema)
      .describe('layers that contribute to the value, from high to low precedence; all layers if there is an error'),
    overrode: z.array(layerSchema).describe('layers that do not contribute to the value'),
    faults: z.array(z.string()).describe('errors that prevent the module from being resolved for the agent'),
  })
  .meta({ id: 'AgentValue' });
export type AgentValue = z.infer<typeof agentValueSchema>;

const example: AgentValue = {
  module: 'motd',
  parameter: 'text',
  merge: 'replace',
  value: 'Welcome to Paris',
  layers: [{ from: 'assignment', name: 'paris', precedence: 10, value: 'Welcome to Paris' }],
  overrode: [
    { from: 'assignment', name: 'base', precedence: 0, value: 'Welcome' },
    { from: 'default', name: null, precedence: null, value: '' },
  ],
  faults: [],
};

export const listValues = route({
  id: 'listValues',
  method: 'GET',
  path: '/agents/{node_id}/values',
  tag: 'Agents',
  summary: "List an agent's parameter values and their origins",
  description:
    'Lists the parameters of all modules that assignments enforce on the agent now, in the order of the modules. A page has at most 4 MiB, so it may have fewer items than `limit`. Values never contain secrets, only their names.',
  access: 'operator',
  params: nodeParams,
  query: z.strictObject({
    module: z.string().optional().describe('only the parameters of this module'),
    ...pageQuery(1000, 1000),
  }),
  paged: true,
  answers: { 200: z.array(agentValueSchema) },
  errors: ['agent_not_found'],
  example: { params: { node_id: nodeExample }, answer: [example] },
});
