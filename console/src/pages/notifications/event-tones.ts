import type { AuditEvent } from '@muster/protocol/http';
import type { Tone } from '../../parts/badge.tsx';

const tones: Record<AuditEvent['severity'], Tone> = { info: 'neutral', warning: 'warn', critical: 'bad' };

/**
 * Types of events that report a failure or a lost agent, which have the tone `bad` on all pages, regardless of
 * their severity.
 */
const failures: ReadonlySet<string> = new Set([
  ...['agent.lost', 'channel.dropped', 'channel.failing', 'run.halted', 'state.failed'],
]);

/** Returns the tone of an event or a notification. A pending agent has the tone that it has in the list of agents. */
export const eventTone = ({ event_type, severity }: Pick<AuditEvent, 'event_type' | 'severity'>): Tone =>
  failures.has(event_type) ? 'bad' : event_type === 'agent.pending' ? 'warn' : (tones[severity] ?? 'neutral');
