import type { AuditEvent } from '@muster/protocol/http';

/**
 * Events of operations and runs of any kind. Their summaries begin with the kind, such as `plan on web-1 requested`,
 * `plan of web succeeded on 2 agents`, or `plan started on 2 agents`.
 */
const ofAnyKind: ReadonlySet<string> = new Set([
  ...['state.requested', 'state.cancel_requested', 'state.cancelled'],
  ...['run.started', 'run.cancelled', 'run.ended'],
]);

/**
 * Reports whether the event records that a plan was requested, ended, or was canceled. A plan that failed or was halted
 * is not left out. Each dialog that applies requests a plan, so lists fold or omit these events.
 */
export const isPlanEvent = ({ event_type, summary }: Pick<AuditEvent, 'event_type' | 'summary'>): boolean =>
  event_type === 'state.planned' ||
  (ofAnyKind.has(event_type) && /^(cancellation of )?plan (on|of|started) (?!.* failed on )/.test(summary));
