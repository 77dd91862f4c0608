import { z } from 'zod';
import { optional, queryInteger } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators/operators.ts';

const party = z.strictObject({ type: z.string(), id: z.string(), name: z.string() });
export const auditEventSchema = z
  .strictObject({
    id: z.string(),
    event_type: z.string(),
    severity: z.enum(['info', 'warning', 'critical']),
    timestamp: z.string().describe('RFC 3339'),
    actor: party,
    target: party,
    summary: z.string(),
    metadata: z.record(z.string(), z.json()),
  })
  .meta({ id: 'AuditEvent' });
export type AuditEvent = z.infer<typeof auditEventSchema>;

const link = {
  place: z.number().int().describe('position in the chain; 1 is the first event, and 0 is the position before it'),
  hash: z.string().describe('SHA-256, hex'),
};
const linkSchema = z.strictObject(link).meta({ id: 'AuditLink' });

/** An event with its position in the chain, as in exports and the live stream. */
export const chainedEventSchema = z
  .strictObject({ ...link, ...auditEventSchema.shape })
  .meta({ id: 'ChainedAuditEvent' });
export type ChainedEvent = z.infer<typeof chainedEventSchema>;

/** Returns the schema for text that contains events. The OpenAPI document references the schema of a single event. */
export const textOfEvents = (contentMediaType: string) =>
  z.string().meta({
    override: {
      type: 'string',
      contentMediaType,
      contentSchema: { $ref: '#/components/schemas/ChainedAuditEvent' },
    } as object,
  });

const eventExample: AuditEvent = {
  id: '01KAGZ7R3E5F6G7H8J9K0M1N2P',
  event_type: 'agent.approved',
  severity: 'info',
  timestamp: '2026-11-20T08:00:00.000Z',
  actor: { type: 'operator', id: operatorId, name: 'ada' },
  target: { type: 'agent', id: '3f8c2b0a9d7e41568c1b2a3d4e5f6071', name: 'web-1' },
  summary: 'agent web-1 approved',
  metadata: {},
};
export const chainedExample: ChainedEvent = {
  place: 1207,
  hash: '9e8f0c1d2b3a49586776859493a2b1c0d9e8f7061524334251607f8e9dacbbca',
  ...eventExample,
};

const filter = {
  agent: z.string().max(64).optional().describe('node id or name of an agent that is the target or the actor'),
  operator: z.string().max(64).optional().describe('operator id or username'),
  event_type: z.string().max(64).optional(),
  category: z.string().max(64).optional().describe('part of the event type before the dot'),
  after: z.string().max(64).optional().describe('start of the period, RFC 3339, inclusive'),
  before: z.string().max(64).optional().describe('end of the period, RFC 3339, exclusive'),
};

export const listAudit = route({
  id: 'listAudit',
  method: 'GET',
  path: '/audit',
  tag: 'Audit',
  summary: 'List events, newest first',
  access: 'operator',
  query: z.strictObject({
    ...filter,
    cursor: z.string().max(64).optional().describe('`next_cursor` of the previous page'),
    limit: queryInteger(500, 50).optional(),
  }),
  answers: {
    200: z
      .strictObject({ events: z.array(auditEventSchema), has_more: z.boolean(), next_cursor: z.string().nullable() })
      .meta({ id: 'AuditPage' }),
  },
  errors: [],
  example: {
    query: { category: 'agent' },
    answer: { events: [eventExample], has_more: false, next_cursor: null },
  },
});

export const exportAudit = route({
  id: 'exportAudit',
  method: 'GET',
  path: '/audit/export',
  tag: 'Audit',
  summary: 'Export the audit log as JSON lines, in the order of its chain',
  description:
    'Each line is a `ChainedAuditEvent`. The export ends with the event that is the newest in the chain at the time of the request. ' +
    'Events that are not chained yet are omitted; they are chained within a fraction of a second.',
  access: 'operator',
  query: z.strictObject(filter),
  answers: { 200: textOfEvents('application/jsonl').describe('lines of ChainedAuditEvent') },
  media: { 200: 'application/jsonl' },
  errors: [],
  example: { query: { category: 'agent' }, answer: `${JSON.stringify(chainedExample)}\n` },
});

export const verifyAudit = route({
  id: 'verifyAudit',
  method: 'GET',
  path: '/audit/verify',
  tag: 'Audit',
  summary: 'Verify the chain of the audit log',
  description:
    'Recomputes all hashes, from the oldest event to the newest. Keep `head` in another place: a log that was ' +
    'rewritten as a whole is consistent, but has a different hash at that position.',
  access: 'operator',
  answers: {
    200: z
      .strictObject({
        ok: z.boolean(),
        verified: z.number().int().describe('number of consecutive intact events, starting with the oldest'),
        anchor: linkSchema.describe('newest event that was pruned, after which the chain begins'),
        head: linkSchema.describe('newest event in the chain'),
        unchained: z.number().int().describe('number of recorded events that are not in the chain yet'),
        fault: z
          .strictObject({ place: z.number().int(), event_id: z.string().nullable(), message: z.string() })
          .nullable()
          .describe('first position with an error; null if there is none'),
      })
      .meta({ id: 'AuditVerdict' }),
  },
  errors: [],
  example: {
    answer: {
      ok: true,
      verified: 1207,
      anchor: { place: 0, hash: '0'.repeat(64) },
      head: { place: 1207, hash: chainedExample.hash },
      unchained: 0,
      fault: null,
    },
  },
});

export const pruneAudit = route({
  id: 'pruneAudit',
  method: 'DELETE',
  path: '/audit',
  tag: 'Audit',
  summary: 'Remove old events',
  description:
    'Removes all events that precede the first event since `before`. Keeps the last removed hash, so that ' +
    'the remaining chain can be verified.',
  access: 'admin',
  query: z.strictObject({
    before: z.string().max(64).describe('RFC 3339, exclusive'),
    dry_run: z.enum(['true', 'false']).optional().describe('`true` counts the events without removing them'),
  }),
  answers: { 200: z.strictObject({ deleted: z.number().int() }).meta({ id: 'AuditPruned' }) },
  errors: [],
  example: { query: { before: '2026-01-01T00:00:00Z' }, answer: { deleted: 4711 } },
});

const retentionSchema = z
  .strictObject({
    retention_days: z
      .number()
      .int()
      .nullable()
      .describe('retention in days; null if `audit.retention_days` of the configuration applies'),
  })
  .meta({ id: 'AuditRetention' });

export const getAuditRetention = route({
  id: 'getAuditRetention',
  method: 'GET',
  path: '/audit/retention',
  tag: 'Audit',
  summary: 'Show the retention period of events, if an admin has set one',
  access: 'operator',
  answers: { 200: retentionSchema },
  errors: [],
  example: { answer: { retention_days: null } },
});

export const setAuditRetention = route({
  id: 'setAuditRetention',
  method: 'PUT',
  path: '/audit/retention',
  tag: 'Audit',
  summary: 'Set the retention of events',
  description: 'Without a value, `audit.retention_days` of the configuration applies again.',
  access: 'admin',
  body: z.strictObject({ retention_days: optional(z.number().int().min(1)) }),
  bodyOptional: true,
  answers: { 200: retentionSchema },
  errors: [],
  example: { body: { retention_days: 365 }, answer: { retention_days: 365 } },
});
