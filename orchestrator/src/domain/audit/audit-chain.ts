import { hash } from 'node:crypto';
import type { AuditEvent } from '@muster/protocol/http';
import { fromJson } from '../../store/json-text.ts';
import type { PlacedEvent } from './placed-event.ts';

/**
 * Computes the audit log's hash chain. Each event's hash covers the previous hash, so that no event can be changed,
 * removed, or moved without changing all later hashes. docs/security.md describes the computation for auditors.
 */

/** The hash before the first event of an unpruned chain. */
export const genesis = '0'.repeat(64);

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

export function categoryOf(type: string): string {
  const end = type.indexOf('.');
  return end === -1 ? type : type.slice(0, end);
}

/**
 * Returns the canonical JSON of RFC 8785: no white space, keys sorted by UTF-16 code units, numbers and strings as in
 * ECMAScript.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = value as Readonly<Record<string, unknown>>;
    let members = '';
    for (const key of Object.keys(fields).sort())
      members += `${members === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(fields[key])}`;
    return `{${members}}`;
  }
  return JSON.stringify(value);
}

const party = (type: string, id: string, name: string): string =>
  `{"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"type":${JSON.stringify(type)}}`;

/**
 * Returns the {@link canonicalJson} of an event with its position in the chain. Unrolled for speed, because every event
 * is hashed.
 */
function canonicalEvent(row: Omit<PlacedEvent, 'hash' | 'category'>): string {
  const actor = party(row.actor_type, row.actor_id, row.actor_name);
  const target = party(row.target_type, row.target_id, row.target_name);
  const metadata = canonicalJson(fromJson(row.metadata));
  const timestamp = new Date(row.timestamp_ms).toISOString();
  return `{"actor":${actor},"event_type":${JSON.stringify(row.event_type)},"id":${JSON.stringify(row.id)},"metadata":${metadata},"place":${row.place},"severity":${JSON.stringify(row.severity)},"summary":${JSON.stringify(row.summary)},"target":${target},"timestamp":"${timestamp}"}`;
}

/**
 * Computes the hash of an event.
 * @param previous hash of the previous event, or {@link genesis}
 * @throws if the row does not contain a valid event
 */
export function hashOf(previous: string, event: Omit<PlacedEvent, 'hash' | 'category'>): string {
  return hash('sha256', previous + canonicalEvent(event), 'hex');
}
