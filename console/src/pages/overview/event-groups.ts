import type { AuditEvent } from '@muster/protocol/http';

/** Similar events in quick succession, shown as one line. */
export interface EventGroup {
  /** The newest event. */
  readonly event: AuditEvent;
  /** Number of all events in the group. */
  readonly count: number;
}

/** Maximum interval in milliseconds between an event and the next newer one in its group. */
const maxGapMs = 60_000;

const isSignIn = ({ event_type, severity }: Pick<AuditEvent, 'event_type' | 'severity'>): boolean =>
  event_type.startsWith('auth.') && severity === 'info';

/**
 * Returns a key that is equal for events that belong together: those with the same type, severity, and actor. All
 * sign-in events of one operator count as one type, because each sign-in causes several events.
 */
export function similarityOf({ event_type, severity, actor }: AuditEvent): string {
  const type = isSignIn({ event_type, severity }) ? 'auth' : event_type;
  // Agents cause most events. Events of several agents belong together.
  const who = actor.type === 'agent' ? '' : actor.id;
  return `${type} ${severity} ${actor.type} ${who}`;
}

/**
 * Groups similar events, such as the plan requests of a run on twenty agents. Never groups critical events.
 * @param events newest first
 * @returns groups in the order of their newest events
 */
export function groupEvents(events: readonly AuditEvent[]): EventGroup[] {
  const groups: { event: AuditEvent; count: number; oldestAt: number }[] = [];
  const open = new Map<string, (typeof groups)[number]>();
  for (const event of events) {
    const at = Date.parse(event.timestamp);
    const key = similarityOf(event);
    const group = open.get(key);
    // An operator's sign-ins share one line, however far apart, because separate lines would hide the fleet's events.
    const isSimilar = group !== undefined && (isSignIn(event) || group.oldestAt - at <= maxGapMs);
    if (isSimilar && event.severity !== 'critical') {
      // The sign-in event describes the operator's action best.
      const describesGroup = event.event_type === 'auth.signed_in' && group.event.event_type !== 'auth.signed_in';
      if (describesGroup && group.oldestAt - at <= maxGapMs) group.event = event;
      group.count++;
      group.oldestAt = at;
      continue;
    }
    const begun = { event, count: 1, oldestAt: at };
    groups.push(begun);
    open.set(key, begun);
  }
  return groups;
}
