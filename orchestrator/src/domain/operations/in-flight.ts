import type { Bus } from '../../bus/bus.ts';
import type { ReportedOperation } from '../../store/queries/operations.ts';
import type { SentSecret } from '../secrets/secret-access.ts';
import { newTally, type Tally } from './report-limits.ts';

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
  /** What was kept of an operation's results and output; of one that this process did not send, not all is known. */
  tallyOf(operationId: string): Tally;
  /** Remembers it, after what it counts was committed. */
  tally(operationId: string, kept: Tally): void;
  close(): void;
}

/** Beyond it the oldest are forgotten, and looked up when they are reported on. */
const kept = 50_000;
/** As many, and those of operations that an earlier process sent. */
const keptTallies = 2 * kept;
/** Characters of encrypted secrets that are kept with them; those of further operations are looked up. */
const keptSecrets = 16 * 1024 * 1024;
/** Removals that are remembered of all operations; of the oldest beyond it they are not known any more. */
const keptRemovals = 500_000;

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
      if (secrets === null || secretsLength + lengthOf(secrets) > keptSecrets) return;
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
        if (oldest === operationId || (tallies.size <= keptTallies && removals <= keptRemovals)) break;
        removals -= entry.counted;
        if (tallies.size > keptTallies) tallies.delete(oldest);
        else tallies.set(oldest, { tally: { ...entry.tally, removals: null }, counted: 0 });
      }
    },
    close,
  };
}

const lengthOf = (secrets: readonly SentSecret[]): number =>
  secrets.reduce((sum, { sealed }) => sum + sealed.length, 0);
