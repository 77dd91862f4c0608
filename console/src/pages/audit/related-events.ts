import type { AuditEvent } from '@muster/protocol/http';
import { isPlanEvent } from '../../api/live/plan-events.ts';
import { similarityOf } from '../overview/event-groups.ts';

/** Consecutive events of one action, such as the events of a sign-in, newest first. */
export interface RelatedEvents {
  /** The event that describes the action best. */
  readonly lead: AuditEvent;
  readonly events: readonly [AuditEvent, ...AuditEvent[]];
}

/** Maximum interval in milliseconds between consecutive events of one action. An operator confirms a sign-in. */
const maxGapMs = 10_000;
const maxSignInGapMs = 60_000;
const maxPlanGapMs = 60_000;

/** Fields of an event's metadata that identify the action of the event. */
const references = ['operation_id', 'run_id', 'plan_run_id', 'session_id', 'drift_id', 'enrolment_token_id'] as const;

function referencesOf({ target, metadata }: AuditEvent): string[] {
  const ids = references.map((name) => metadata[name]);
  return [target.id, ...ids].filter((id) => typeof id === 'string' && id !== '') as string[];
}

/** Reports whether two consecutive events belong to one action: similar events, or events of one actor about one thing. */
function areRelated(newer: AuditEvent, older: AuditEvent): boolean {
  // Events that need attention are never hidden behind another one.
  if (newer.severity !== 'info' || older.severity !== 'info') return false;
  const arePlans = isPlanEvent(newer) && isPlanEvent(older);
  const maxGap = newer.event_type.startsWith('auth.') ? maxSignInGapMs : arePlans ? maxPlanGapMs : maxGapMs;
  if (Date.parse(newer.timestamp) - Date.parse(older.timestamp) > maxGap) return false;
  const isSameActor = newer.actor.type === older.actor.type && newer.actor.id === older.actor.id;
  // Agents and the system continue the plans of an operator.
  if (arePlans) return isSameActor || [newer, older].some(({ actor }) => actor.type !== 'operator');
  if (similarityOf(newer) === similarityOf(older)) return true;
  const known = new Set(referencesOf(newer));
  return isSameActor && referencesOf(older).some((id) => known.has(id));
}

/**
 * Groups consecutive events of one action.
 * @param events newest first
 */
export function groupRelated(events: readonly AuditEvent[]): RelatedEvents[] {
  const groups: [AuditEvent, ...AuditEvent[]][] = [];
  for (const event of events) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    if (group !== undefined && last !== undefined && areRelated(last, event)) group.push(event);
    else groups.push([event]);
  }
  // A sign-in is followed by the events of its session, which describe it less well.
  return groups.map((group) => ({
    events: group,
    lead: group.find(({ event_type }) => event_type === 'auth.signed_in') ?? group[0],
  }));
}

/** A row of the log: the heading of a day, or the events of an action. */
export type AuditEntry = { readonly day: string } | RelatedEvents;

const dateText = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' });

/**
 * Adds a heading before the first action of each local day.
 * @param now Unix milliseconds
 */
export function withDays(groups: readonly RelatedEvents[], now: number): AuditEntry[] {
  const today = new Date(now);
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  let last = '';
  return groups.flatMap((group): AuditEntry[] => {
    const at = new Date(group.events[0].timestamp);
    const date = at.toDateString();
    if (date === last) return [group];
    last = date;
    if (date === today.toDateString()) return [{ day: 'Today' }, group];
    return [{ day: date === yesterday.toDateString() ? 'Yesterday' : dateText.format(at) }, group];
  });
}
