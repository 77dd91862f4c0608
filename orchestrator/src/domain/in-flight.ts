import type { Bus } from '../bus/bus.ts';
import type { ReportedOperation } from '../store/operations.ts';
import type { SentSecret } from './secret-access.ts';

/**
 * What is known of operations that agents have now, so that their reports need not look it up: none of it changes but
 * the status, and a report that comes after the end is refused by the database whatever is remembered here.
 */
export interface InFlight {
  /** @param secrets what it was sent with; null: others than those count */
  sent(operation: ReportedOperation, secrets: readonly SentSecret[] | null): void;
  find(operationId: string): ReportedOperation | undefined;
  /** The secrets an operation was sent with, encrypted; undefined when that is not known here. */
  secretsOf(operationId: string): readonly SentSecret[] | undefined;
  /** Counts what an operation's results and output come to, in characters; @returns the sum so far */
  weigh(operationId: string, characters: number): number;
  close(): void;
}

/** Beyond it the oldest are forgotten, and looked up when they are reported on. */
const kept = 50_000;
/** Characters of encrypted secrets that are kept with them; those of further operations are looked up. */
const keptSecrets = 16 * 1024 * 1024;

export function createInFlight(bus: Pick<Bus, 'subscribe'>): InFlight {
  const known = new Map<string, ReportedOperation>();
  const secretsSent = new Map<string, readonly SentSecret[]>();
  let secretsLength = 0;
  const forgetSecrets = (operationId: string) => {
    secretsLength -= lengthOf(secretsSent.get(operationId) ?? []);
    secretsSent.delete(operationId);
  };
  const weights = new Map<string, number>();
  const close = bus.subscribe((hint) => {
    if (hint.type !== 'operation_ended') return;
    known.delete(hint.operation_id);
    weights.delete(hint.operation_id);
    forgetSecrets(hint.operation_id);
  });
  return {
    sent(operation, secrets) {
      if (known.size >= kept) {
        const oldest = known.keys().next().value as string;
        known.delete(oldest);
        forgetSecrets(oldest);
      }
      known.set(operation.operation_id, operation);
      forgetSecrets(operation.operation_id);
      if (secrets === null || secretsLength + lengthOf(secrets) > keptSecrets) return;
      secretsSent.set(operation.operation_id, secrets);
      secretsLength += lengthOf(secrets);
    },
    secretsOf: (operationId) => secretsSent.get(operationId),
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

const lengthOf = (secrets: readonly SentSecret[]): number =>
  secrets.reduce((sum, { sealed }) => sum + sealed.length, 0);
