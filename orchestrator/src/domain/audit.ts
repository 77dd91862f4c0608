import { isKeyId, MusterError } from '@muster/protocol';
import type { AuditEvent } from '@muster/protocol/http';
import { agentIdTakingName } from '../store/agents.ts';
import { auditEvents, insertAuditEvent } from '../store/audit.ts';
import type { Database } from '../store/database.ts';
import { fromJson, toJson } from '../store/json-text.ts';
import { operatorTaking } from '../store/operators.ts';
import { type Statement, statement } from '../store/unit.ts';
import type { Actor, Context } from './context.ts';

/** What happened, before it has a time and an id. */
export interface Happening {
  type: string;
  severity?: 'info' | 'warning' | 'critical';
  actor: Actor;
  target?: { type: string; id: string; name: string };
  /** One sentence for people. */
  summary: string;
  /** Never a secret value. */
  metadata?: Record<string, unknown>;
}

/** The statement that records what happened: it belongs in the same unit as the change itself. */
export function audited(context: Context, happening: Happening): Statement {
  const target = happening.target ?? { type: '', id: '', name: '' };
  return statement(insertAuditEvent, {
    id: context.newId(),
    event_type: happening.type,
    category: categoryOf(happening.type),
    severity: happening.severity ?? 'info',
    timestamp_ms: context.now(),
    actor_type: happening.actor.type,
    actor_id: happening.actor.id,
    actor_name: happening.actor.name,
    target_type: target.type,
    target_id: target.id,
    target_name: target.name,
    summary: happening.summary,
    metadata: toJson(happening.metadata ?? {}),
  });
}

export interface AuditFilter {
  agent?: string | undefined;
  operator?: string | undefined;
  event_type?: string | undefined;
  category?: string | undefined;
  after?: string | undefined;
  before?: string | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
}

/** A page of events, newest first. */
export async function listAudit({ db }: Context, filter: AuditFilter) {
  const limit = filter.limit ?? 50;
  const agent = filter.agent === undefined ? undefined : await agentIdOf(db, filter.agent);
  const operator = filter.operator === undefined ? undefined : await operatorIdOf(db, filter.operator);
  const after = filter.after === undefined ? undefined : instant(filter.after, '/after');
  const before = filter.before === undefined ? undefined : instant(filter.before, '/before');
  const below = filter.cursor === undefined ? undefined : cursor(filter.cursor);
  const query = auditEvents({
    agent: agent !== undefined,
    operator: operator !== undefined,
    event_type: filter.event_type !== undefined,
    category: filter.category !== undefined,
    after: after !== undefined,
    before: before !== undefined,
    below: below !== undefined,
  });
  const rows = await db.all(query, {
    agent,
    operator,
    event_type: filter.event_type,
    category: filter.category,
    after,
    before,
    below,
    limit: limit + 1,
  });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const more = rows.length > limit && last !== undefined;
  return {
    events: page.map(
      (row): AuditEvent => ({
        id: row.id,
        event_type: row.event_type,
        severity: row.severity,
        timestamp: new Date(row.timestamp_ms).toISOString(),
        actor: { type: row.actor_type, id: row.actor_id, name: row.actor_name },
        target: { type: row.target_type, id: row.target_id, name: row.target_name },
        summary: row.summary,
        metadata: fromJson(row.metadata) as AuditEvent['metadata'],
      }),
    ),
    has_more: more,
    next_cursor: more ? String(last.seq) : null,
  };
}

const categoryOf = (type: string): string => type.split('.', 1)[0] as string;

/** No id of anything; an empty one stands for the system itself. */
const nobody = '-';

/** Names are looked up, never matched: a hostname that reads like another agent's name is not that agent. */
async function agentIdOf(db: Database, idOrName: string): Promise<string> {
  if (isKeyId(idOrName)) return idOrName;
  return (await db.get(agentIdTakingName, { name: idOrName, node_id: '' }))?.node_id ?? nobody;
}

async function operatorIdOf(db: Database, idOrName: string): Promise<string> {
  if (isKeyId(idOrName)) return idOrName;
  return (await db.get(operatorTaking, { username: idOrName }))?.operator_id ?? nobody;
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;

function instant(text: string, path: string): number {
  const time = rfc3339.test(text) ? Date.parse(text) : Number.NaN;
  // The engine reads the 31st of February as the 3rd of March.
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(time) || Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.slice(0, 10)) {
    const message = 'must be a time like 2026-01-31T08:00:00Z';
    throw new MusterError('invalid_input', `${path.slice(1)} ${message}`, [{ path, message }]);
  }
  return time;
}

function cursor(text: string): number {
  if (!/^\d{1,15}$/.test(text))
    throw new MusterError('invalid_input', 'the cursor is not one that was handed out', [
      { path: '/cursor', message: 'must be the next_cursor of an earlier answer' },
    ]);
  return Number(text);
}
