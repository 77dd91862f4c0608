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
    'Sends one signed datagram to the broadcast address of each network, or to `target`. Agents do not answer; those that accept discovery connect and wait for approval. If only part of it could be sent, `sent_to` lists that part.',
  access: 'operator',
  bodyOptional: true,
  body: z.strictObject({
    target: optional(z.string().min(1).max(262)).describe(
      '`host:port`, IPv6 addresses in brackets; absent: every network of this machine',
    ),
  }),
  answers: { 200: z.strictObject({ sent_to: z.array(z.string()).describe('address and port') }) },
  errors: ['discovery_failed'],
  example: { body: { target: '192.0.2.40:4747' }, answer: { sent_to: ['192.0.2.40:4747'] } },
});
