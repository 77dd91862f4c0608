/**
 * For which agents another apply of the same desired set that changes nothing has nothing to add to applied state, so
 * that it need not be read. It holds as long as no other apply has ended since, and whoever relies on it checks that in
 * the rows, in the write.
 */
export interface AppliedMemory {
  /**
   * @param payloadDigest of an apply that changed nothing; null: it did
   * @returns the operation before, which had the same set and changed nothing; null: applied state has to be read
   */
  sameAs(nodeId: string, payloadDigest: string | null): string | null;
  /** Remembers an apply that changed nothing, after it was committed. */
  remember(nodeId: string, payloadDigest: string, operationId: string): void;
  forget(nodeId: string): void;
}

/** Agents; beyond it the oldest are forgotten. */
const kept = 20_000;

export function createAppliedMemory(): AppliedMemory {
  const last = new Map<string, { payloadDigest: string; operationId: string }>();
  return {
    sameAs(nodeId, payloadDigest) {
      const known = last.get(nodeId);
      return known !== undefined && known.payloadDigest === payloadDigest ? known.operationId : null;
    },
    remember(nodeId, payloadDigest, operationId) {
      const known = last.get(nodeId);
      if (known) {
        known.payloadDigest = payloadDigest;
        known.operationId = operationId;
        return;
      }
      if (last.size >= kept) last.delete(last.keys().next().value as string);
      last.set(nodeId, { payloadDigest, operationId });
    },
    forget: (nodeId) => void last.delete(nodeId),
  };
}
