import { MusterError, visibleLine } from '@muster/protocol';
import { type EventType, eventTypes } from '@muster/protocol/http';
import { toJson } from '../../store/json-text.ts';
import { auditEvents, auditKeys, insertAuditEvent, insertAuditEventInSession } from '../../store/queries/audit.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { categoryOf, toAuditEvent } from './audit-chain.ts';
import { type AuditFilter, readFilter } from './audit-filter.ts';

export interface Happening<T extends EventType = EventType> {
  type: T;
  /** Defaults to the event type's usual severity. */
  severity?: (typeof eventTypes)[T]['severity'][number];
  actor: Actor;
  target?: { type: string; id: string; name: string };
  /** A single sentence for the audit log. */
  summary: string;
  /** Must not contain secret values. */
  metadata?: { [K in (typeof eventTypes)[T]['metadata'][number]]?: unknown };
}

/**
 * Returns the statement that records an event, for the transaction that makes the change. If the actor has a sign-in
 * session, the statement makes the transaction fail with `unauthenticated` once the session has ended.
 */
export function audited<T extends EventType>(context: Context, happening: Happening<T>): Statement {
  const target = happening.target ?? { type: '', id: '', name: '' };
  const event = {
    id: context.newId(),
    event_type: happening.type,
    category: categoryOf(happening.type),
    severity: happening.severity ?? eventTypes[happening.type].severity[0],
    timestamp_ms: context.now(),
    actor_type: happening.actor.type,
    actor_id: happening.actor.id,
    actor_name: happening.actor.name,
    target_type: target.type,
    target_id: target.id,
    target_name: target.name,
    // Cleans the summary, because it is displayed in terminals and browsers and may contain names that machines chose.
    summary: visibleLine(happening.summary),
    metadata: toJson(happening.metadata ?? {}),
  };
  const { session } = happening.actor;
  if (session === undefined) return statement(insertAuditEvent, event);
  return statement(
    insertAuditEventInSession,
    { ...event, session, now: seconds(context.now()) },
    { expect: 'changed', else: 'unauthenticated' },
  );
}

/**
 * Maximum number of bytes per page. A single event can be large, because it may list all modules of a run or all tokens
 * of an operator.
 */
const pageBytes = 1024 * 1024;

/**
 * Returns a page of events, newest first. The page ends early at `pageBytes`, and the next page then continues after
 * its last event.
 */
export async function listAudit(
  context: Context,
  request: AuditFilter & { cursor?: string | undefined; limit?: number | undefined },
) {
  const limit = request.limit ?? 50;
  const below = request.cursor === undefined ? undefined : readCursor(request.cursor);
  const filter = await readFilter(context, request);
  const query = auditKeys({
    agent: filter.agent !== undefined,
    operator: filter.operator !== undefined,
    event_type: filter.event_type !== undefined,
    category: filter.category !== undefined,
    after: filter.after !== undefined,
    before: filter.before !== undefined,
    below: below !== undefined,
  });
  const keys = await context.db.all(query, { ...filter, ...below, limit: limit + 1 });
  const page = keys.slice(0, Math.min(limit, withinBytes(keys)));
  const rows = await context.db.all(auditEvents, { seqs: page.map(({ seq }) => seq) });
  const found = new Map(rows.map((row) => [row.seq, row]));
  const last = page.at(-1);
  const more = keys.length > page.length && last !== undefined;
  return {
    // Pruning may have removed an event after its key was read.
    events: page.flatMap(({ seq }) => found.get(seq) ?? []).map(toAuditEvent),
    has_more: more,
    next_cursor: more ? `${last.timestamp_ms}.${last.seq}` : null,
  };
}

/** Returns how many events fit into {@link pageBytes}, at least one. */
function withinBytes(keys: readonly { bytes: number }[]): number {
  let sum = 0;
  const over = keys.findIndex(({ bytes }, at) => {
    sum += Number(bytes);
    return sum > pageBytes && at > 0;
  });
  return over === -1 ? keys.length : over;
}

/** Decodes a cursor: the time and number of a page's last event, which never change. */
function readCursor(text: string): { below_ms: number; below_seq: number } {
  const read = /^(\d{1,15})\.(\d{1,15})$/.exec(text);
  if (read === null)
    throw new MusterError('invalid_input', 'the cursor is invalid', [
      { path: '/cursor', message: 'must be the next_cursor of an earlier response' },
    ]);
  return { below_ms: Number(read[1]), below_seq: Number(read[2]) };
}
