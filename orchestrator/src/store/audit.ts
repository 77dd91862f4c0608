import { defineQuery, defineVariants } from './query.ts';
import type { AuditEventsTable } from './schema.ts';

/** An event before it gets its number. */
type AuditRow = Omit<AuditEventsTable, 'seq'>;

export const insertAuditEvent = defineQuery('audit/insert', (db, p: { [K in keyof AuditRow]: AuditRow[K] }) =>
  db.insertInto('audit_events').values({
    id: p.id,
    event_type: p.event_type,
    category: p.category,
    severity: p.severity,
    timestamp_ms: p.timestamp_ms,
    actor_type: p.actor_type,
    actor_id: p.actor_id,
    actor_name: p.actor_name,
    target_type: p.target_type,
    target_id: p.target_id,
    target_name: p.target_name,
    summary: p.summary,
    metadata: p.metadata,
  }),
);

/** Newest first, by the time and then the number an event got. */
export const auditEvents = defineVariants(
  'audit/list',
  (
    db,
    p: {
      agent: string;
      operator: string;
      event_type: string;
      category: string;
      after: number;
      before: number;
      below: number;
      limit: number;
    },
    _d,
    v: {
      agent?: boolean;
      operator?: boolean;
      event_type?: boolean;
      category?: boolean;
      after?: boolean;
      before?: boolean;
      below?: boolean;
    },
  ) => {
    let query = db.selectFrom('audit_events').selectAll();
    if (v.agent) query = query.where((w) => w.or([w('target_id', '=', p.agent), w('actor_id', '=', p.agent)]));
    if (v.operator) query = query.where('actor_id', '=', p.operator);
    if (v.event_type) query = query.where('event_type', '=', p.event_type);
    if (v.category) query = query.where('category', '=', p.category);
    if (v.after) query = query.where('timestamp_ms', '>=', p.after);
    if (v.before) query = query.where('timestamp_ms', '<', p.before);
    if (v.below) query = query.where('seq', '<', p.below);
    return query.orderBy('seq', 'desc').limit(p.limit);
  },
);
