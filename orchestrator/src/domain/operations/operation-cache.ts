import type { Bus, Hint, QueuedOperation } from '../../bus/bus.ts';
import type { ReportedOperation } from '../../store/queries/operations/operations.ts';
import type { SentSecret } from '../secrets/secret-access.ts';
import { newTally, type Tally, unknownTally } from './report-limits.ts';

/**
 * Caches open operations, so that they can be dispatched and their reports stored without lookups. The database is
 * authoritative: the write that marks an operation as dispatched verifies the operation, and the database refuses
 * reports after it has ended.
 */
export interface OperationCache {
  /**
   * Removes and returns an operation that a hint announced.
   * @returns null if no operation is cached, for example because the agent may have several
   */
  takeQueued(nodeId: string): QueuedOperation | null;
  /**
   * Records that an operation was sent.
   * @param secrets the secrets in the message; null if other values may have been sent
   */
  sent(operation: ReportedOperation, secrets: readonly SentSecret[] | null): void;
  find(operationId: string): ReportedOperation | undefined;
  /** Returns the encrypted secrets in an operation's message; undefined if this process does not have them. */
  secretsOf(operationId: string): readonly SentSecret[] | undefined;
  /** Returns the totals of an operation's stored reports. Does not include reports received by other processes. */
  tallyOf(operationId: string): Tally;
  tally(operationId: string, kept: Tally): void;
  close(): void;
}

/** Maximum number of queued operations. The oldest are evicted, and are read from the database when they are due. */
const maxQueued = 10_000;
/** Maximum number of sent operations. The oldest are evicted, and are looked up when needed. */
const maxSent = 50_000;
/** Maximum number of tallies: twice `maxSent`, because an earlier process may have sent some of the operations. */
const maxTallies = 2 * maxSent;
/** Maximum number of characters of cached encrypted secrets. Evicted secrets are looked up when needed. */
const maxSecretCharacters = 16 * 1024 * 1024;
/** Maximum number of removals stored for all operations. The oldest tallies lose their removals first. */
const maxRemovals = 500_000;

export function createOperationCache(bus: Pick<Bus, 'subscribe'>): OperationCache {
  const queued = createQueued();
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
    queued.hear(hint);
    if (hint.type !== 'operation_ended') return;
    known.delete(hint.operation_id);
    forgetTally(hint.operation_id);
    forgetSecrets(hint.operation_id);
  });
  return {
    takeQueued: queued.take,
    sent(operation, secrets) {
      if (known.size >= maxSent) {
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
    tallyOf: (operationId) => tallies.get(operationId)?.tally ?? (known.has(operationId) ? newTally() : unknownTally),
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

function createQueued() {
  const byNode = new Map<string, QueuedOperation>();
  return {
    take(nodeId: string): QueuedOperation | null {
      const operation = byNode.get(nodeId) ?? null;
      byNode.delete(nodeId);
      return operation;
    },
    hear(hint: Hint): void {
      if (hint.type === 'operation_ended') {
        if (byNode.get(hint.node_id)?.operation_id === hint.operation_id) byNode.delete(hint.node_id);
      } else if (hint.type === 'work') {
        // If an agent has several queued operations, none is cached, because their rows determine the order.
        if (byNode.delete(hint.node_id) || hint.operation === undefined) return;
        if (byNode.size >= maxQueued) byNode.delete(byNode.keys().next().value as string);
        byNode.set(hint.node_id, hint.operation);
      }
    },
  };
}

const lengthOf = (secrets: readonly SentSecret[]): number =>
  secrets.reduce((sum, { sealed }) => sum + sealed.length, 0);
