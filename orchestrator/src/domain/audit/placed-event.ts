import type { AuditEventsTable } from '../../store/schema.ts';
import type { Statement } from '../../store/transaction.ts';

/** An event that has its place in the chain: places follow each other without gaps, in the order of commits. */
export interface PlacedEvent extends Omit<AuditEventsTable, 'seq' | 'place' | 'hash'> {
  readonly place: number;
  /** SHA-256 over the hash before it and the event, lower-case hex. */
  readonly hash: string;
}

/**
 * What follows from events: rows to be written in the very unit that gives the events their places, so that it follows
 * once, whenever the process dies.
 * @param events in the order of their places
 */
export type EventConsumer = (events: readonly PlacedEvent[]) => Promise<readonly Statement[]>;
