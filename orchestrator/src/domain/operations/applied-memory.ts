/**
 * Caches each agent's last apply if it changed nothing. If the next apply of the same desired state, from the same
 * revisions, changes nothing either, applied state is unchanged and need not be read. The caller's write verifies that
 * no other apply has ended in between.
 */
export interface AppliedMemory {
  /**
   * Finds the last apply if it had the same desired state and changed nothing.
   * @param payloadDigest digest of the desired state and revisions of an apply; null if it is unknown
   * @returns the id of the last apply; null if applied state must be read
   */
  sameAs(nodeId: string, payloadDigest: string | null): string | null;
  /** Call this after an apply that changed nothing is committed. */
  remember(nodeId: string, payloadDigest: string, operationId: string): void;
  forget(nodeId: string): void;
}

/** Maximum number of agents. The oldest entries are evicted. */
const maxAgents = 20_000;

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
      if (last.size >= maxAgents) last.delete(last.keys().next().value as string);
      last.set(nodeId, { payloadDigest, operationId });
    },
    forget: (nodeId) => void last.delete(nodeId),
  };
}
