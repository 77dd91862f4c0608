import { z } from 'zod';
import { optional } from './definition/fields.ts';
import { route } from './definition/route.ts';

export const discover = route({
  id: 'discover',
  method: 'POST',
  path: '/discover',
  tag: 'Agents',
  summary: 'Announce this orchestrator to agents that have none',
  description:
    'Sends a signed datagram to the broadcast address of each network, or to `target`. Agents do not answer the datagram; those that accept discovery connect and wait for approval. `sent_to` lists only the addresses to which a datagram could be sent.',
  access: 'operator',
  bodyOptional: true,
  body: z.strictObject({
    target: optional(z.string().min(1).max(262)).describe(
      '`host:port`, with IPv6 addresses in brackets; default: all networks of the orchestrator’s machine',
    ),
  }),
  answers: { 200: z.strictObject({ sent_to: z.array(z.string()).describe('addresses with ports') }) },
  errors: ['discovery_failed'],
  example: { body: { target: '192.0.2.40:4747' }, answer: { sent_to: ['192.0.2.40:4747'] } },
});
