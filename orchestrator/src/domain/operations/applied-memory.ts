import { hash } from 'node:crypto';

/**
 * Returns a digest of a desired state and of the revisions of its modules. Its length does not depend on the number of
 * modules, because {@link AppliedMemory} keeps one for each agent.
 * @param revisions the revision of each module, as JSON; null if they are unknown
 */
export const appliedDigest = (payloadDigest: string, revisions: string | null): string =>
  hash('sha256', `${payloadDigest}${revisions ?? ''}`, 'base64url');

/**
 * Caches each agent's last apply if it changed nothing. If the next apply of the same desired state, from the same
 * revisions, changes nothing either, applied state is unchanged and need not be read. The caller's write verifies that
 * no other apply has ended in between.
 */
export interface AppliedMemory {
  /**
   * Finds the last apply if it had the same desired state and changed nothing.
   * @param applied digest of the apply by {@link appliedDigest}; null if it is unknown
   * @returns the id of the last apply; null if applied state must be read
   */
  sameAs(nodeId: string, applied: string | null): string | null;
  /** Call this after an apply that changed nothing is committed. */
  remember(nodeId: string, applied: string, operationId: string): void;
  forget(nodeId: string): void;
}

/** Maximum number of agents. The oldest entries are evicted. */
const maxAgents = 20_000;

export function createAppliedMemory(): AppliedMemory {
  const last = new Map<string, { applied: string; operationId: string }>();
  return {
    sameAs(nodeId, applied) {
      const known = last.get(nodeId);
      return known !== undefined && known.applied === applied ? known.operationId : null;
    },
    remember(nodeId, applied, operationId) {
      const known = last.get(nodeId);
      if (known) {
        known.applied = applied;
        known.operationId = operationId;
        return;
      }
      if (last.size >= maxAgents) last.delete(last.keys().next().value as string);
      last.set(nodeId, { applied, operationId });
    },
    forget: (nodeId) => void last.delete(nodeId),
  };
}
