import { eventSentence } from '@muster/protocol/event-sentence';
import type { AuditEvent } from '@muster/protocol/http';
import { sanitiseLine } from './sanitize.ts';
import { ago, type Colors, type Style, timestamp, withRelativeTimes } from './style.ts';

export const severityPaint = (severity: AuditEvent['severity'], color: Colors): ((text: string) => string) =>
  severity === 'critical' ? color.red : severity === 'warning' ? color.yellow : (text) => text;

/** Returns the name or id of the actor; null for the orchestrator itself. */
export const actorOf = ({ actor }: Pick<AuditEvent, 'actor'>): string | null =>
  actor.type === 'system' || (actor.name === '' && actor.id === '') ? null : actor.name || actor.id;

export const eventWhen = ({ timestamp: at }: Pick<AuditEvent, 'timestamp'>, { now, verbose }: Style): string =>
  verbose ? at : ago(Date.parse(at) / 1000, now);

const clock = (at: string, { verbose }: Style): string =>
  verbose ? at : timestamp(Date.parse(at) / 1000).slice(11, 19);

/** Returns a line of the event stream: time of day, type, summary, and actor. */
export function eventLine(event: AuditEvent, style: Style): string {
  const { color } = style;
  const paint = severityPaint(event.severity, color);
  const actor = actorOf(event);
  // Omits the actor if the sentence already names it.
  const by = event.actor.id === event.target.id || event.summary.startsWith(`${actor} `) ? null : actor;
  const who = by === null ? '' : color.dim(` by ${sanitiseLine(by)}`);
  return `${color.dim(clock(sanitiseLine(event.timestamp), style))} ${paint(sanitiseLine(event.event_type).padEnd(18))} ${sanitiseLine(withRelativeTimes(eventSentence(event), style))}${who}`;
}
