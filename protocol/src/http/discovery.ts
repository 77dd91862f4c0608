import { z } from 'zod';
import { optional } from './fields.ts';
import { route } from './route.ts';

export const discover = route({
  id: 'discover',
  method: 'POST',
  path: '/discover',
  tag: 'Agents',
  summary: 'Tell agents that know no orchestrator where this one is',
  description:
    'Sends one signed datagram to the broadcast address of each network, or to `target`. Agents never answer it: those that let themselves be found connect, and wait for approval. Where only some of it could be sent, `sent_to` has those.',
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
