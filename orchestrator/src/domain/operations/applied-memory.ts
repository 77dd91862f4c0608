/**
 * Remembers the last apply of each agent that changed nothing. Another apply of the same desired set without changes does not
 * change applied state, so that applied state need not be read. This holds as long as no other apply has ended since,
 * which the caller checks in its write.
 */
export interface AppliedMemory {
  /**
   * @param payloadDigest digest of an apply that changed nothing; null when it changed something
   * @returns the previous operation with the same set and without changes; null when applied state must be read
   */
  sameAs(nodeId: string, payloadDigest: string | null): string | null;
  /** Remembers an apply that changed nothing. Call it after the commit. */
  remember(nodeId: string, payloadDigest: string, operationId: string): void;
  forget(nodeId: string): void;
}

/** Maximum number of agents; the oldest are evicted. */
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
