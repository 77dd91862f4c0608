import { z } from 'zod';
import { chainedExample, textOfEvents } from './audit.ts';
import { route } from './definition/route.ts';

const cursor = z.string().max(16).optional();

export const followEvents = route({
  id: 'followEvents',
  method: 'GET',
  path: '/events',
  tag: 'Events',
  summary: 'Stream events as they happen, as Server-Sent Events',
  description:
    'Each event of the audit log is sent as `data`, a `ChainedAuditEvent`, with its position in the chain as `id`. A client that reconnects ' +
    'sends the last received id as `Last-Event-ID`, and receives all later events. If some of them were pruned or never existed, ' +
    'an `event: gap` with `{after, next, reason}` comes first. The stream also announces changes, without an id, and does not repeat them: ' +
    '`event: operation` with `{operation_id, node_id, run_id, status}` when an operation ends, and with the status `running` when it ' +
    'starts and when it has further results (for a drift check, the id is that of its record); `event: run` with `{run_id}`, which is null if any run may have changed; `event: agent` with `{node_id, change}`, where ' +
    '`change` is `connected`, `disconnected`, `attributes`, `changed` (status, name, or tags), or `removed`; `event: window` with `{}`; ' +
    'and `event: notification` with `{}` when the operator of the stream has read notifications. A client should read the changed object again. ' +
    'After 20 changes of one kind within half a second, `event: agents` with `{agents: [{node_id, change}]}` and `event: operations` with `{operations: [..]}` ' +
    'announce further changes together, with the last change of each. If the list is null, there were too many changes, or some were lost: read all agents or operations again. ' +
    'Changes that are neither in the audit log nor announced, such as samples, must be polled. With the category `output` or with `node_id`, the stream also sends `event: output` with ' +
    '`{operation_id, node_id, resource}`, at most once a second for an agent, while a program writes output: read the output of the operation. The stream ends with its sign-in session, if the client reads too slowly, and when the orchestrator stops.',
  access: 'operator',
  query: z.strictObject({
    category: z
      .string()
      .max(256)
      .optional()
      .describe('part of the event type before the dot, or several such parts separated by commas'),
    node_id: z.string().max(64).optional().describe('node id or name of an agent that is the target or the actor'),
    last_event_id: cursor.describe(
      'alternative to the header `Last-Event-ID` for clients that cannot send headers; the header takes precedence',
    ),
  }),
  headers: z.object({ 'last-event-id': cursor.describe('position of the last received event') }),
  answers: { 200: textOfEvents('text/event-stream').describe('events that each end with an empty line') },
  media: { 200: 'text/event-stream' },
  errors: [],
  example: {
    query: { category: 'agent,state' },
    answer: `retry: 2000\nid: 1206\n\nid: 1207\ndata: ${JSON.stringify(chainedExample)}\n\n`,
  },
});
