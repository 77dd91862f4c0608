import { z } from 'zod';
import { optional, pageQuery, unixSeconds, unixTime } from './definition/fields.ts';
import { route } from './definition/route.ts';

export const windowSchema = z
  .strictObject({
    id: z.string(),
    starts_at: unixSeconds,
    ends_at: unixSeconds,
    reason: z.string(),
    created_by: z.string(),
    selector: z
      .string()
      .nullable()
      .describe('selector of the agents that the window covers; null for all; the empty selector matches none'),
    warnings: z.array(z.string()).optional().describe('warnings about the selector; absent if there are none'),
  })
  .meta({ id: 'Window' });
export type Window = z.infer<typeof windowSchema>;

const windowExample: Window = {
  id: '01KAGZ8S4F6G7H8J9K0M1N2P3Q',
  starts_at: 1795000000,
  ends_at: 1795007200,
  reason: 'kernel updates in Paris',
  created_by: '21fe31dfa154a261626bf854046fd227',
  selector: 'site=paris',
};
const example = { params: { id: windowExample.id }, answer: windowExample };

const windowParams = z.strictObject({ id: z.string() });
const reason = z
  .string()
  .min(1, 'must not be empty')
  .max(1024)
  .refine((text) => !/\p{Cc}/u.test(text), 'must not contain control characters');

export const listWindows = route({
  id: 'listWindows',
  method: 'GET',
  path: '/maintenance-windows',
  tag: 'Maintenance windows',
  summary: 'List maintenance windows, latest start first',
  access: 'operator',
  query: z.strictObject(pageQuery(500, 1000)),
  paged: true,
  answers: { 200: z.array(windowSchema) },
  errors: [],
  example: { answer: [windowExample] },
});

export const getWindow = route({
  id: 'getWindow',
  method: 'GET',
  path: '/maintenance-windows/{id}',
  tag: 'Maintenance windows',
  summary: 'Show a maintenance window',
  access: 'operator',
  params: windowParams,
  answers: { 200: windowSchema },
  errors: ['window_not_found'],
  example,
});

export const createWindow = route({
  id: 'createWindow',
  method: 'POST',
  path: '/maintenance-windows',
  tag: 'Maintenance windows',
  summary: 'Add a maintenance window',
  description:
    'The window is open from `starts_at` until just before `ends_at`. While it is open, notifications about its agents (`agent.lost`, `agent.returned`, `drift.detected`) are suppressed, and assignments with `window_only` may be applied to them. An apply of such an assignment expires if it is not dispatched before the window ends.',
  access: 'admin',
  body: z.strictObject({
    starts_at: unixTime,
    ends_at: unixTime,
    reason,
    selector: optional(z.string().max(2048)).describe(
      'selector of the agents that the window covers; default: all; the empty selector matches none',
    ),
  }),
  answers: { 201: windowSchema },
  errors: ['selector_invalid'],
  example: {
    body: {
      starts_at: windowExample.starts_at,
      ends_at: windowExample.ends_at,
      reason: windowExample.reason,
      selector: windowExample.selector,
    },
    answer: windowExample,
  },
});

export const updateWindow = route({
  id: 'updateWindow',
  method: 'PUT',
  path: '/maintenance-windows/{id}',
  tag: 'Maintenance windows',
  summary: 'Change the end or the reason of a maintenance window',
  access: 'admin',
  params: windowParams,
  bodyOptional: true,
  body: z.strictObject({ ends_at: optional(unixTime), reason: optional(reason) }),
  answers: { 200: windowSchema },
  errors: ['window_not_found'],
  example: {
    ...example,
    body: { ends_at: windowExample.ends_at + 3600 },
    answer: { ...windowExample, ends_at: windowExample.ends_at + 3600 },
  },
});

export const removeWindow = route({
  id: 'removeWindow',
  method: 'DELETE',
  path: '/maintenance-windows/{id}',
  tag: 'Maintenance windows',
  summary: 'Remove a maintenance window',
  description: 'Ends the window if it is open.',
  access: 'admin',
  params: windowParams,
  answers: { 204: null },
  errors: ['window_not_found'],
  example: { params: { id: windowExample.id } },
});
