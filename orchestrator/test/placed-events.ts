import type { AuditEvent } from '@muster/protocol/http';
import type { EventConsumer, PlacedEvent } from '../src/domain/audit/placed-event.ts';
import type { Domain } from './domain.ts';

/** Builds an event with a position in the chain, for event consumers. */
export function placedEvent({ context }: Domain, place: number, more: Partial<PlacedEvent> = {}): PlacedEvent {
  const event_type = more.event_type ?? 'agent.lost';
  return {
    place,
    hash: 'ab'.repeat(32),
    id: context.newId(),
    event_type,
    category: event_type.split('.', 1)[0] as string,
    severity: 'warning' as AuditEvent['severity'],
    timestamp_ms: context.now(),
    actor_type: 'system',
    actor_id: '',
    actor_name: '',
    target_type: 'agent',
    target_id: 'ab'.repeat(16),
    target_name: 'web-1',
    summary: `event ${place}`,
    metadata: '{}',
    ...more,
  };
}

/** Passes events to a consumer and writes its statements, as the sequencer does. */
export async function consume({ db }: Domain, consumer: EventConsumer, events: readonly PlacedEvent[]): Promise<void> {
  await db.write({ name: 'test/consume', statements: await consumer(events) });
}
