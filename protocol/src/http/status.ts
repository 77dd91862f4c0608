import { z } from 'zod';
import { route } from './route.ts';

export const statusSchema = z
  .strictObject({
    status: z.enum(['ok', 'degraded']),
    protocol_version: z.number().int(),
    public_key: z.string().describe('identity key of the orchestrator: what agents pin'),
    version: z.string(),
  })
  .meta({ id: 'Status' });

export const getStatus = route({
  id: 'getStatus',
  method: 'GET',
  path: '/status',
  tag: 'Status',
  summary: 'Whether the orchestrator is well, and its public key',
  access: 'anyone',
  answers: { 200: statusSchema },
  errors: [],
  example: { answer: { status: 'ok', protocol_version: 1, public_key: 'ab'.repeat(32), version: '0.1.0' } },
});
