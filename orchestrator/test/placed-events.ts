import type { AuditEvent } from '@muster/protocol/http';
import type { EventConsumer, PlacedEvent } from '../src/domain/audit/placed-event.ts';
import type { Domain } from './domain.ts';

/** An event that has its place, made up for a consumer of events. */
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

/** Hands events to a consumer and writes what follows from them, as whoever places events does. */
export async function consume({ db }: Domain, consumer: EventConsumer, events: readonly PlacedEvent[]): Promise<void> {
  await db.write({ name: 'test/consume', statements: await consumer(events) });
}
