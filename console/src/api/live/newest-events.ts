import type { AuditEvent } from '@muster/protocol/http';

export const maxEvents = 50;

/**
 * Prepends newer events to a list in newest-first order. Skips events that the list already contains.
 * @param newer oldest first
 */
export function withNewer(events: readonly AuditEvent[], newer: readonly AuditEvent[]): AuditEvent[] {
  const known = new Set(events.map(({ id }) => id));
  return [...newer.filter(({ id }) => !known.has(id)).toReversed(), ...events].slice(0, maxEvents);
}
