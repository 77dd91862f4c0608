import { z } from 'zod';
import { optional, queryInteger } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators.ts';

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
  place: z.number().int().describe('1 is the first event; 0 is before it'),
  hash: z.string().describe('SHA-256, hex'),
};
const linkSchema = z.strictObject(link).meta({ id: 'AuditLink' });

/** An event with its position in the chain, as in exports and the live stream. */
export const chainedEventSchema = z
  .strictObject({ ...link, ...auditEventSchema.shape })
  .meta({ id: 'ChainedAuditEvent' });
export type ChainedEvent = z.infer<typeof chainedEventSchema>;

/** Consecutive events as text. The API description names their schema. */
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
  agent: z
    .string()
    .max(64)
    .optional()
    .describe('node id or name: events of which the agent is the target or the actor'),
  operator: z.string().max(64).optional().describe('operator id or username'),
  event_type: z.string().max(64).optional(),
  category: z.string().max(64).optional().describe('the part of the type before its dot'),
  after: z.string().max(64).optional().describe('RFC 3339, inclusive'),
  before: z.string().max(64).optional().describe('RFC 3339, exclusive'),
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
  summary: 'Export the log as JSON lines, in the order of its chain',
  description:
    'One `ChainedAuditEvent` a line, up to the end of the chain at the time of the request. Events get their places within a ' +
    'fraction of a second; events without one are left out.',
  access: 'operator',
  query: z.strictObject(filter),
  answers: { 200: textOfEvents('application/jsonl').describe('one ChainedAuditEvent a line') },
  media: { 200: 'application/jsonl' },
  errors: [],
  example: { query: { category: 'agent' }, answer: `${JSON.stringify(chainedExample)}\n` },
});

export const verifyAudit = route({
  id: 'verifyAudit',
  method: 'GET',
  path: '/audit/verify',
  tag: 'Audit',
  summary: 'Verify the chain of the log',
  description:
    'Recomputes every hash, from the oldest event to the newest. Keep `head` elsewhere: a log that was ' +
    'rewritten as a whole is consistent, but no longer has that hash at that position.',
  access: 'operator',
  answers: {
    200: z
      .strictObject({
        ok: z.boolean(),
        verified: z.number().int().describe('intact events, counted from the oldest'),
        anchor: linkSchema.describe('the newest event that was pruned, where the chain begins'),
        head: linkSchema.describe('the newest event in the chain'),
        unchained: z.number().int().describe('recorded events that are not in the chain'),
        fault: z
          .strictObject({ place: z.number().int(), event_id: z.string().nullable(), message: z.string() })
          .nullable()
          .describe('the first position with a fault'),
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
    'Removes the beginning of the chain, and keeps its last hash, so that the rest can still be verified. Stops at the ' +
    'first event that is not older. With `dry_run` it only counts them.',
  access: 'admin',
  query: z.strictObject({
    before: z.string().max(64).describe('RFC 3339, exclusive'),
    dry_run: z.enum(['true', 'false']).optional().describe('`true`: count the events, but do not remove them'),
  }),
  answers: { 200: z.strictObject({ deleted: z.number().int() }).meta({ id: 'AuditPruned' }) },
  errors: [],
  example: { query: { before: '2026-01-01T00:00:00Z' }, answer: { deleted: 4711 } },
});

const retentionSchema = z
  .strictObject({
    retention_days: z.number().int().nullable().describe('null: the configuration’s `audit.retention_days` applies'),
  })
  .meta({ id: 'AuditRetention' });

export const getAuditRetention = route({
  id: 'getAuditRetention',
  method: 'GET',
  path: '/audit/retention',
  tag: 'Audit',
  summary: 'Show for how many days events are kept, if that was set here',
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
  summary: 'Set for how many days events are kept',
  description: 'Without a value, the configuration’s `audit.retention_days` applies again.',
  access: 'admin',
  body: z.strictObject({ retention_days: optional(z.number().int().min(1)) }),
  bodyOptional: true,
  answers: { 200: retentionSchema },
  errors: [],
  example: { body: { retention_days: 365 }, answer: { retention_days: 365 } },
});
