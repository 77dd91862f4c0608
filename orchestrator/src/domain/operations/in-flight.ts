import type { Bus } from '../../bus/bus.ts';
import type { ReportedOperation } from '../../store/queries/operations.ts';
import type { SentSecret } from '../secrets/secret-access.ts';
import { newTally, type Tally } from './report-limits.ts';

/**
 * Cache of operations that agents have now, so that reports need no lookup. Only the status of an operation changes,
 * and the database refuses reports after its end whatever this cache says.
 */
export interface InFlight {
  /** @param secrets the secrets it was sent with; null when other values may have been sent */
  sent(operation: ReportedOperation, secrets: readonly SentSecret[] | null): void;
  find(operationId: string): ReportedOperation | undefined;
  /** The secrets that an operation was sent with, encrypted; undefined when unknown here. */
  secretsOf(operationId: string): readonly SentSecret[] | undefined;
  /** Totals of what was kept of an operation; incomplete when another process sent it. */
  tallyOf(operationId: string): Tally;
  /** Remembers the totals after they were committed. */
  tally(operationId: string, kept: Tally): void;
  close(): void;
}

/** Maximum number of operations; the oldest are evicted and looked up again. */
const kept = 50_000;
/** Twice as many, because tallies also cover operations that an earlier process sent. */
const maxTallies = 2 * kept;
/** Maximum characters of encrypted secrets in the cache; those of further operations are looked up. */
const maxSecretCharacters = 16 * 1024 * 1024;
/** Maximum number of removals remembered for all operations; the oldest tallies forget theirs. */
const maxRemovals = 500_000;

export function createInFlight(bus: Pick<Bus, 'subscribe'>): InFlight {
  const known = new Map<string, ReportedOperation>();
  const secretsSent = new Map<string, readonly SentSecret[]>();
  let secretsLength = 0;
  const forgetSecrets = (operationId: string) => {
    secretsLength -= lengthOf(secretsSent.get(operationId) ?? []);
    secretsSent.delete(operationId);
  };
  const tallies = new Map<string, { tally: Tally; counted: number }>();
  let removals = 0;
  const forgetTally = (operationId: string) => {
    removals -= tallies.get(operationId)?.counted ?? 0;
    tallies.delete(operationId);
  };
  const close = bus.subscribe((hint) => {
    if (hint.type !== 'operation_ended') return;
    known.delete(hint.operation_id);
    forgetTally(hint.operation_id);
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
      if (secrets === null || secretsLength + lengthOf(secrets) > maxSecretCharacters) return;
      secretsSent.set(operation.operation_id, secrets);
      secretsLength += lengthOf(secrets);
    },
    secretsOf: (operationId) => secretsSent.get(operationId),
    find: (operationId) => known.get(operationId),
    tallyOf: (operationId) =>
      tallies.get(operationId)?.tally ?? (known.has(operationId) ? newTally() : { ...newTally(), removals: null }),
    tally(operationId, tally) {
      forgetTally(operationId);
      const counted = tally.removals?.size ?? 0;
      tallies.set(operationId, { tally, counted });
      removals += counted;
      for (const [oldest, entry] of tallies) {
        if (oldest === operationId || (tallies.size <= maxTallies && removals <= maxRemovals)) break;
        removals -= entry.counted;
        if (tallies.size > maxTallies) tallies.delete(oldest);
        else tallies.set(oldest, { tally: { ...entry.tally, removals: null }, counted: 0 });
      }
    },
    close,
  };
}

const lengthOf = (secrets: readonly SentSecret[]): number =>
  secrets.reduce((sum, { sealed }) => sum + sealed.length, 0);
