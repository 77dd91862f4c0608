import { z } from 'zod';
import { optional, pageQuery, unixSeconds } from '../definition/fields.ts';
import { route } from '../definition/route.ts';

/** Example of an operator's public key. */
export const operatorKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';

/** Example of an operator's id. */
export const operatorId = '21fe31dfa154a261626bf854046fd227';

export const roles = ['admin', 'operator'] as const;
export type Role = (typeof roles)[number];

export const operatorSchema = z
  .strictObject({
    operator_id: z.string(),
    username: z.string(),
    role: z.enum(roles),
    added_at: unixSeconds,
    added_by: z.string().describe('operator_id, or `bootstrap`'),
    bootstrap: z.boolean(),
    removed_at: unixSeconds.nullable(),
    removed_by: z.string().nullable(),
  })
  .meta({ id: 'Operator' });
export type Operator = z.infer<typeof operatorSchema>;

const operatorExample: Operator = {
  operator_id: operatorId,
  username: 'ada',
  role: 'admin',
  added_at: 1795000000,
  added_by: 'bootstrap',
  bootstrap: true,
  removed_at: null,
  removed_by: null,
};

export const listOperators = route({
  id: 'listOperators',
  method: 'GET',
  path: '/operators',
  tag: 'Operators',
  summary: 'List operators',
  access: 'operator',
  query: z.strictObject({ ...pageQuery(1000, 1000), include_removed: z.enum(['true', 'false']).optional() }),
  paged: true,
  answers: { 200: z.array(operatorSchema) },
  errors: [],
  example: { answer: [operatorExample] },
});

export const addOperator = route({
  id: 'addOperator',
  method: 'POST',
  path: '/operators',
  tag: 'Operators',
  summary: 'Add an operator',
  access: 'admin',
  body: z.strictObject({ public_key: z.string(), username: z.string(), role: optional(z.enum(roles)) }),
  answers: { 201: operatorSchema },
  errors: ['key_invalid', 'name_taken', 'key_taken'],
  example: { body: { public_key: operatorKey, username: 'ada', role: 'admin' }, answer: operatorExample },
});

const operatorParams = z.strictObject({ operator_id: z.string() });

export const getOperator = route({
  id: 'getOperator',
  method: 'GET',
  path: '/operators/{operator_id}',
  tag: 'Operators',
  summary: 'Show an operator, including a removed one',
  access: 'operator',
  params: operatorParams,
  answers: { 200: operatorSchema },
  errors: ['operator_not_found'],
  example: { params: { operator_id: operatorExample.operator_id }, answer: operatorExample },
});

export const removeOperator = route({
  id: 'removeOperator',
  method: 'DELETE',
  path: '/operators/{operator_id}',
  tag: 'Operators',
  summary: 'Remove an operator',
  description:
    'The record remains. Ends the operator’s sign-in sessions, streams, and terminals, and revokes its web login codes and enrollment tokens, all before the response. `POST /operators/{operator_id}/remove` does the same and lists them.',
  access: 'admin',
  params: operatorParams,
  answers: { 204: null },
  errors: ['operator_not_found', 'last_admin'],
  example: { params: { operator_id: operatorExample.operator_id } },
});

export const removedOperatorSchema = z
  .strictObject({
    operator: operatorSchema,
    ended: z
      .strictObject({
        sessions: z.int().describe('number of sign-in sessions, which ended with their streams'),
        web_logins: z.int().describe('number of web login codes'),
        enrolment_tokens: z
          .array(z.strictObject({ id: z.string(), name: z.string().nullable() }))
          .describe('valid tokens that the operator created, at most the oldest 500; the event has their number'),
        terminals: z.array(z.string()).describe('session_id of each open terminal'),
      })
      .describe('objects that the removal ended; empty if the operator had already been removed'),
    operators_added: z
      .array(z.strictObject({ operator_id: z.string(), username: z.string() }))
      .describe(
        'operators who can still sign in and who were added by this operator, or by a removed operator whom this operator had added',
      ),
    left: z
      .strictObject({
        modules: z.array(z.string()).describe('names of modules whose newest revision was uploaded by these operators'),
        assignments: z.array(z.string()).describe('names of assignments'),
        channels: z.array(z.strictObject({ id: z.string(), name: z.string() })),
        runs: z.array(z.string()).describe('run_id of each open run'),
        operations: z
          .array(z.string())
          .describe('operation_id of each open operation outside of runs, at most the oldest 500'),
      })
      .describe('remaining objects of this operator, and of removed operators whom it had added, to be reviewed'),
  })
  .meta({ id: 'RemovedOperator' });

export const removeOperatorReporting = route({
  id: 'removeOperatorReporting',
  method: 'POST',
  path: '/operators/{operator_id}/remove',
  tag: 'Operators',
  summary: 'Remove an operator, and list what the removal ended',
  description: 'Does the same as `DELETE /operators/{operator_id}`, and lists what the removal ended and what remains.',
  access: 'admin',
  params: operatorParams,
  answers: { 200: removedOperatorSchema },
  errors: ['operator_not_found', 'last_admin'],
  example: {
    params: { operator_id: operatorExample.operator_id },
    answer: {
      operator: { ...operatorExample, removed_at: 1795000600, removed_by: '0a0b0c0d0e0f00010203040506070809' },
      ended: {
        sessions: 1,
        web_logins: 0,
        enrolment_tokens: [{ id: '01JD1XM3Z3T8Y4E2W6R5Q7P9AB', name: null }],
        terminals: [],
      },
      operators_added: [],
      left: { modules: [], assignments: ['web'], channels: [], runs: [], operations: [] },
    },
  },
});
