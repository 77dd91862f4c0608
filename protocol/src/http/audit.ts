import { z } from 'zod';
import { queryInteger, route } from './route.ts';

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

export const listAudit = route({
  id: 'listAudit',
  method: 'GET',
  path: '/audit',
  tag: 'Audit',
  summary: 'What happened, newest first',
  access: 'operator',
  query: z.strictObject({
    agent: z.string().max(64).optional().describe('node id or name'),
    operator: z.string().max(64).optional().describe('operator id or username'),
    event_type: z.string().max(64).optional(),
    category: z.string().max(64).optional().describe('the part of the type before its dot'),
    after: z.string().max(64).optional().describe('RFC 3339, inclusive'),
    before: z.string().max(64).optional().describe('RFC 3339, exclusive'),
    cursor: z.string().max(64).optional(),
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
    answer: {
      events: [
        {
          id: '01KAGZ7R3E5F6G7H8J9K0M1N2P',
          event_type: 'agent.approved',
          severity: 'info',
          timestamp: '2026-11-20T08:00:00.000Z',
          actor: { type: 'operator', id: '21fe31dfa154a261626bf854046fd227', name: 'ada' },
          target: { type: 'agent', id: '3f8c2b0a9d7e41568c1b2a3d4e5f6071', name: 'web-1' },
          summary: 'agent web-1 approved',
          metadata: {},
        },
      ],
      has_more: false,
      next_cursor: null,
    },
  },
});
