import { z } from 'zod';
import { route } from './route.ts';

export const statusSchema = z
  .strictObject({
    status: z.enum(['ok', 'degraded']),
    protocol_version: z.number().int(),
    public_key: z.string().describe('identity key of the orchestrator: what agents pin'),
    version: z.string(),
    reasons: z
      .array(z.enum(['database', 'secrets_key', 'metrics', 'disk']))
      .describe(
        'why it is degraded: the database takes no writes, a key for secrets is missing, samples of the machines cannot be stored, the disk is nearly full',
      ),
  })
  .meta({ id: 'Status' });

export const healthSchema = z
  .strictObject({
    database: z.strictObject({
      kind: z.enum(['sqlite', 'postgres']),
      writable: z.boolean().describe('whether it took a write when it was last tried'),
    }),
    secrets_readable: z.boolean().describe('whether the key of every secret is there'),
    metrics: z
      .strictObject({
        writable: z.boolean().describe('whether samples of the machines could be stored when that was last tried'),
        trouble: z.string().nullable().describe('why not'),
      })
      .describe('while they cannot be, agents keep theirs'),
    disk: z
      .strictObject({
        size_bytes: z.number().int(),
        free_bytes: z.number().int(),
        reserve_bytes: z.number().int().describe('what would grow is refused while less is free; 0: never'),
        low: z.boolean(),
      })
      .nullable()
      .describe('the file system of the data directory; null: it cannot be asked'),
  })
  .meta({ id: 'Health' });

export const getStatus = route({
  id: 'getStatus',
  method: 'GET',
  path: '/status',
  tag: 'Status',
  summary: 'Whether the orchestrator is well, and its public key',
  access: 'anyone',
  answers: { 200: statusSchema },
  errors: [],
  example: {
    answer: { status: 'ok', protocol_version: 1, public_key: 'ab'.repeat(32), version: '0.1.0', reasons: [] },
  },
});

export const getHealth = route({
  id: 'getHealth',
  method: 'GET',
  path: '/health',
  tag: 'Status',
  summary: 'How the database, the keys for secrets, the samples of the machines and the disk are',
  access: 'operator',
  answers: { 200: healthSchema },
  errors: [],
  example: {
    answer: {
      database: { kind: 'sqlite', writable: true },
      secrets_readable: true,
      metrics: { writable: true, trouble: null },
      disk: { size_bytes: 42_949_672_960, free_bytes: 21_474_836_480, reserve_bytes: 268_435_456, low: false },
    },
  },
});
