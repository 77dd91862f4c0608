import { z } from 'zod';
import { chainedExample, textOfEvents } from './audit.ts';
import { route } from './route.ts';

const place = z.string().max(16).optional();

export const followEvents = route({
  id: 'followEvents',
  method: 'GET',
  path: '/events',
  tag: 'Events',
  summary: 'Events as they happen, as Server-Sent Events',
  description:
    'Each event of the audit log comes as `data`, a `ChainedAuditEvent`, with its place as `id`. A client that was cut off ' +
    'sends the last id it got as `Last-Event-ID` and misses nothing; where what it missed was pruned, or was never there, ' +
    'an `event: gap` with `{after, next, reason}` comes first. In between come, without an id and never again, ' +
    '`event: operation` with `{operation_id, node_id, run_id, status}`, when it has ended, and with the status `running` when it has ' +
    'begun and when further results are there (a drift check has the id of its record); `event: run` with `{run_id}`; `event: agent` with `{node_id, change}`, the ' +
    'change being `connected`, `disconnected`, `attributes`, `changed` (status, name or tags) or `removed`; `event: window` with `{}`; ' +
    'and `event: notification` with `{}`, when the operator of the stream has read some: something has changed that a view may look at anew. ' +
    'Beyond 20 of one kind in half a second, `event: agents` with `{agents: [{node_id, change}]}` and `event: operations` with `{operations: [..]}` ' +
    'tell the rest together, the last word on each last; null in place of the list: too many, or some were missed, so all of them are looked at anew. ' +
    'What the audit log has no event of and is not told here, such as samples, is to be asked for. Whoever names the category `output` or an agent also gets `event: output` with ' +
    '`{operation_id, node_id, resource}`, at most once a second for an agent, while a program prints: see the output of the operation. The stream ends with its session, for a client that leaves too much unread, and when the orchestrator stops.',
  access: 'operator',
  query: z.strictObject({
    category: z
      .string()
      .max(256)
      .optional()
      .describe('the part of the type before its dot; several with commas between them'),
    node_id: z.string().max(64).optional().describe('node id or name: what happens to the agent and what it does'),
    last_event_id: place.describe('as the header, for clients that cannot send one; the header wins'),
  }),
  headers: z.object({ 'last-event-id': place.describe('place of the last event that was seen') }),
  answers: { 200: textOfEvents('text/event-stream').describe('events, each ended by an empty line') },
  media: { 200: 'text/event-stream' },
  errors: [],
  example: {
    query: { category: 'agent,state' },
    answer: `retry: 2000\nid: 1206\n\nid: 1207\ndata: ${JSON.stringify(chainedExample)}\n\n`,
  },
});
