import { z } from 'zod';
import { nodeExample } from './agents.ts';
import { nodeParams, textMap } from './definition/fields.ts';
import { route } from './definition/route.ts';

export const putTags = route({
  id: 'putTags',
  method: 'PUT',
  path: '/agents/{node_id}/tags',
  tag: 'Tags',
  summary: 'Replace all tags of an agent',
  access: 'operator',
  params: nodeParams,
  body: z.strictObject({ tags: textMap }),
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
  summary: 'List all tag keys in use with their values, and the number of agents for each value',
  access: 'operator',
  answers: {
    200: z
      .strictObject({
        tags: z.record(z.string(), z.array(z.string())),
        counts: z
          .record(z.string(), z.record(z.string(), z.number().int()))
          .describe('number of agents by key and value'),
      })
      .meta({ id: 'Tags' }),
  },
  errors: [],
  example: { answer: { tags: { role: ['db', 'web'] }, counts: { role: { db: 2, web: 12 } } } },
});
