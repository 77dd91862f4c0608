import { createHash } from 'node:crypto';
import type { AuditEvent } from '@muster/protocol/http';
import { fromJson } from '../../store/json-text.ts';
import type { PlacedEvent } from './placed-event.ts';

/**
 * The chain over the audit log: each event's hash covers the one before, so that nothing in between can be changed,
 * left out or moved without every later hash being another. docs/security.md tells an auditor how to compute it.
 */

/** Where a chain begins of which nothing was removed. */
export const genesis = '0'.repeat(64);

/** An event as everything outside shows it. */
export function toAuditEvent(row: Omit<PlacedEvent, 'place' | 'hash' | 'category'>): AuditEvent {
  return {
    id: row.id,
    event_type: row.event_type,
    severity: row.severity,
    timestamp: new Date(row.timestamp_ms).toISOString(),
    actor: { type: row.actor_type, id: row.actor_id, name: row.actor_name },
    target: { type: row.target_type, id: row.target_id, name: row.target_name },
    summary: row.summary,
    metadata: fromJson(row.metadata) as AuditEvent['metadata'],
  };
}

/** The part of a type before its dot. */
export const categoryOf = (type: string): string => type.split('.', 1)[0] as string;

/**
 * JSON as RFC 8785 writes it: no spaces, keys in the order of their UTF-16 code units, numbers and strings as ECMAScript
 * does. The value is plain data.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

/**
 * The hash of an event.
 * @param previous of the event before, or {@link genesis}
 * @throws when the row does not even hold an event
 */
export function hashOf(previous: string, event: Omit<PlacedEvent, 'hash' | 'category'>): string {
  const text = canonicalJson({ ...toAuditEvent(event), place: event.place });
  return createHash('sha256').update(previous).update(text).digest('hex');
}
