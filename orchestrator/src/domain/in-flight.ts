import type { Bus } from '../bus/bus.ts';
import type { ReportedOperation } from '../store/operations.ts';

/**
 * What is known of operations that agents have now, so that their reports need not look it up: none of it changes but
 * the status, and a report that comes after the end is refused by the database whatever is remembered here.
 */
export interface InFlight {
  sent(operation: ReportedOperation): void;
  find(operationId: string): ReportedOperation | undefined;
  /** Counts what an operation's results and output come to, in characters; @returns the sum so far */
  weigh(operationId: string, characters: number): number;
  close(): void;
}

/** Beyond it the oldest are forgotten, and looked up when they are reported on. */
const kept = 50_000;

export function createInFlight(bus: Pick<Bus, 'subscribe'>): InFlight {
  const known = new Map<string, ReportedOperation>();
  const weights = new Map<string, number>();
  const close = bus.subscribe((hint) => {
    if (hint.type !== 'operation_ended') return;
    known.delete(hint.operation_id);
    weights.delete(hint.operation_id);
  });
  return {
    sent(operation) {
      if (known.size >= kept) known.delete(known.keys().next().value as string);
      known.set(operation.operation_id, operation);
    },
    find: (operationId) => known.get(operationId),
    weigh(operationId, characters) {
      const sum = (weights.get(operationId) ?? 0) + characters;
      if (weights.size >= kept) weights.delete(weights.keys().next().value as string);
      weights.set(operationId, sum);
      return sum;
    },
    close,
  };
}
