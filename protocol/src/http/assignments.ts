import { z } from 'zod';
import { nameParams, optional, pageQuery, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators/operators.ts';

export const assignmentSchema = z
  .strictObject({
    name: z.string(),
    modules: z.array(z.string()),
    selector: z.string(),
    description: z.string().nullable(),
    mode: z.enum(['enforce', 'audit']),
    window_only: z.boolean(),
    parameters: z.record(z.string(), z.record(z.string(), z.json())),
    precedence: z.number().int(),
    created_at: unixSeconds,
    created_by: z.string(),
  })
  .meta({ id: 'Assignment' });
export type Assignment = z.infer<typeof assignmentSchema>;
const precedence = z
  .number()
  .int()
  .min(-1_000_000)
  .max(1_000_000)
  .describe(
    'If a parameter has several values, the one with the highest precedence is used, unless the parameter merges them',
  );
const modules = z
  .array(z.string())
  .max(256)
  .describe('Empty if the assignment only gives values to modules that other assignments assign');
const assignmentExample: Assignment = {
  name: 'base',
  modules: ['motd'],
  selector: 'role=web',
  description: null,
  mode: 'enforce',
  window_only: false,
  parameters: {},
  precedence: 0,
  created_at: 1795000000,
  created_by: operatorId,
};

export const listAssignments = route({
  id: 'listAssignments',
  method: 'GET',
  path: '/assignments',
  tag: 'Assignments',
  summary: 'List assignments',
  description: 'Sorted by name. Agents get the modules in the same order.',
  access: 'operator',
  query: z.strictObject(pageQuery(1000, 1000)),
  paged: true,
  answers: { 200: z.array(assignmentSchema) },
  errors: [],
  example: { answer: [assignmentExample] },
});

export const createAssignment = route({
  id: 'createAssignment',
  method: 'POST',
  path: '/assignments',
  tag: 'Assignments',
  summary: 'Assign modules to the agents that a selector matches',
  description:
    'If `modules` is empty, the assignment only gives the values in `parameters` to modules that other assignments assign to these agents.',
  access: 'operator',
  body: z.strictObject({
    name: z.string().min(1).max(128),
    modules,
    selector: z.string().max(2048),
    description: optional(z.string().max(1024)),
    mode: optional(z.enum(['enforce', 'audit'])),
    window_only: optional(z.boolean()),
    parameters: optional(z.record(z.string(), z.record(z.string(), z.json()))),
    precedence: optional(precedence),
  }),
  answers: { 201: assignmentSchema },
  errors: ['unknown_module', 'selector_invalid', 'name_taken'],
  example: { body: { name: 'base', modules: ['motd'], selector: 'role=web' }, answer: assignmentExample },
});

export const getAssignment = route({
  id: 'getAssignment',
  method: 'GET',
  path: '/assignments/{name}',
  tag: 'Assignments',
  summary: 'Show an assignment and the agents that it currently matches',
  access: 'operator',
  params: nameParams,
  answers: { 200: assignmentSchema.extend({ matches: z.array(z.string()) }).meta({ id: 'AssignmentWithMatches' }) },
  errors: ['assignment_not_found'],
  example: {
    params: { name: 'base' },
    answer: { ...assignmentExample, matches: ['3f8c2b0a9d7e41568c1b2a3d4e5f6071'] },
  },
});

export const updateAssignment = route({
  id: 'updateAssignment',
  method: 'PUT',
  path: '/assignments/{name}',
  tag: 'Assignments',
  summary: 'Change an assignment',
  description:
    'Absent fields remain unchanged. An empty `description` removes the description, and `parameters` replaces all parameters. Agents change at their next apply.',
  access: 'operator',
  params: nameParams,
  body: z.strictObject({
    modules: optional(modules),
    selector: optional(z.string().max(2048)),
    description: optional(z.string().max(1024)),
    mode: optional(z.enum(['enforce', 'audit'])),
    window_only: optional(z.boolean()),
    parameters: optional(z.record(z.string(), z.record(z.string(), z.json()))),
    precedence: optional(precedence),
  }),
  answers: { 200: assignmentSchema },
  errors: ['assignment_not_found', 'assignment_changed', 'unknown_module', 'selector_invalid'],
  example: {
    params: { name: 'base' },
    body: { selector: 'role in (web, proxy)' },
    answer: { ...assignmentExample, selector: 'role in (web, proxy)' },
  },
});

export const removeAssignment = route({
  id: 'removeAssignment',
  method: 'DELETE',
  path: '/assignments/{name}',
  tag: 'Assignments',
  summary: 'Remove an assignment',
  description: 'Machines keep the resources that its modules declare until their next apply.',
  access: 'operator',
  params: nameParams,
  answers: { 204: null },
  errors: ['assignment_not_found'],
  example: { params: { name: 'base' } },
});
