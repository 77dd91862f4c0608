import { z } from 'zod';
import { route } from '../definition/route.ts';

export const statusSchema = z
  .strictObject({
    status: z.enum(['ok', 'degraded']),
    protocol_version: z.number().int(),
    public_key: z.string().describe('identity key of the orchestrator, which agents pin'),
    version: z.string(),
    reasons: z
      .array(z.enum(['database', 'secrets_key', 'metrics', 'disk', 'bus', 'replica']))
      .describe(
        'reasons for `degraded`: the database does not accept writes, a key for secrets is missing, samples cannot be stored, the disk is nearly full, messages from other replicas do not arrive through NATS, or a replica is missing or has another release or configuration',
      ),
  })
  .meta({ id: 'Status' });

export const healthSchema = z
  .strictObject({
    database: z.strictObject({
      kind: z.enum(['sqlite', 'postgres']),
      writable: z.boolean().describe('whether the last write succeeded'),
    }),
    secrets_readable: z.boolean().describe('whether the key of every secret is present'),
    metrics: z
      .strictObject({
        writable: z.boolean().describe('whether the last attempt to store samples succeeded'),
        trouble: z.string().nullable().describe('reason why samples cannot be stored'),
      })
      .describe('storage of samples; while it is not writable, agents keep their samples'),
    disk: z
      .strictObject({
        size_bytes: z.number().int(),
        free_bytes: z.number().int(),
        reserve_bytes: z.number().int().describe('free space below which new work is refused; 0 if never'),
        low: z.boolean(),
      })
      .nullable()
      .describe('file system of the data directory; null if its free space cannot be read'),
    bus: z
      .strictObject({
        connected: z.boolean().describe('whether this replica is connected to NATS'),
        unheard: z.array(z.string()).describe('names of the replicas whose messages do not arrive'),
      })
      .nullable()
      .describe('messages between replicas; null without `nats.url`'),
  })
  .meta({ id: 'Health' });

export const getStatus = route({
  id: 'getStatus',
  method: 'GET',
  path: '/status',
  tag: 'Status',
  summary: 'Show whether the orchestrator is healthy, and its public key',
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
  summary: 'Show the health of the database, the keys for secrets, samples, and the disk',
  access: 'operator',
  answers: { 200: healthSchema },
  errors: [],
  example: {
    answer: {
      database: { kind: 'sqlite', writable: true },
      secrets_readable: true,
      metrics: { writable: true, trouble: null },
      disk: { size_bytes: 42_949_672_960, free_bytes: 21_474_836_480, reserve_bytes: 268_435_456, low: false },
      bus: null,
    },
  },
});
