import type { AuditEventsTable } from '../../store/schema.ts';
import type { Statement } from '../../store/transaction.ts';

/** An event with its position in the chain. Positions have no gaps and follow the order of commits. */
export interface PlacedEvent extends Omit<AuditEventsTable, 'seq' | 'place' | 'hash'> {
  readonly place: number;
  /** SHA-256 over the previous hash and the event, lower-case hex. */
  readonly hash: string;
}

/**
 * Returns rows to write in the transaction that adds the events to the chain. As a result, the rows are written exactly
 * once, even if the process dies.
 * @param events in the order of their positions
 */
export type EventConsumer = (events: readonly PlacedEvent[]) => Promise<readonly Statement[]>;
