import type { AuditEvent } from '@muster/protocol/http';

/** Similar events that happened shortly after one another, shown as one line. */
export interface EventGroup {
  /** The newest event. */
  readonly event: AuditEvent;
  /** Number of all events in the group. */
  readonly count: number;
}

/** Maximum distance in milliseconds between an event and the next newer one in its group. */
const maxGapMs = 60_000;

/**
 * Returns the key of events that belong together: of the same type, severity, and actor. Sign-ins of one operator are
 * one type, because each consists of several events.
 */
function keyOf({ event_type, severity, actor }: AuditEvent): string {
  const type = event_type.startsWith('auth.') && severity === 'info' ? 'auth' : event_type;
  // Agents cause most events. Those of several agents belong together.
  const who = actor.type === 'agent' ? '' : actor.id;
  return `${type} ${severity} ${actor.type} ${who}`;
}

/**
 * Groups similar events, such as the plans that a run requests of twenty agents. Critical events stay alone.
 * @param events newest first
 * @returns groups in the order of their newest events
 */
export function groupEvents(events: readonly AuditEvent[]): EventGroup[] {
  const groups: { event: AuditEvent; count: number; oldestAt: number }[] = [];
  const open = new Map<string, (typeof groups)[number]>();
  for (const event of events) {
    const at = Date.parse(event.timestamp);
    const key = keyOf(event);
    const group = open.get(key);
    if (group !== undefined && event.severity !== 'critical' && group.oldestAt - at <= maxGapMs) {
      group.count++;
      group.oldestAt = at;
      // A sign-in names the operator's action best.
      if (event.event_type === 'auth.signed_in' && group.event.event_type !== 'auth.signed_in') group.event = event;
      continue;
    }
    const begun = { event, count: 1, oldestAt: at };
    groups.push(begun);
    open.set(key, begun);
  }
  return groups;
}
