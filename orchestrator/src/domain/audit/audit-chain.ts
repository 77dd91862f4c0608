import { createHash } from 'node:crypto';
import type { AuditEvent } from '@muster/protocol/http';
import { fromJson } from '../../store/json-text.ts';
import type { PlacedEvent } from './placed-event.ts';

/**
 * Computes the hash chain of the audit log. Each event's hash covers the previous hash, so that no event can be changed,
 * removed, or moved without changing all later hashes. docs/security.md describes the computation for auditors.
 */

/** The hash before the first event of an unpruned chain. */
export const genesis = '0'.repeat(64);

/** Converts a row to an event of the API. */
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

export const categoryOf = (type: string): string => type.split('.', 1)[0] as string;

/**
 * Returns the canonical JSON of RFC 8785: no white space, keys sorted by UTF-16 code units, numbers and strings as in
 * ECMAScript.
 * @param value plain data
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
 * Computes the hash of an event.
 * @param previous hash of the previous event, or {@link genesis}
 * @throws if the row does not contain a valid event
 */
export function hashOf(previous: string, event: Omit<PlacedEvent, 'hash' | 'category'>): string {
  const text = canonicalJson({ ...toAuditEvent(event), place: event.place });
  return createHash('sha256').update(previous).update(text).digest('hex');
}
