import { createHash } from 'node:crypto';
import type { ResourceResult } from '@muster/protocol';
import { keyOf } from './believed-state.ts';

/**
 * Of which machines the last apply left nothing to learn from another one like it: the next need not be compared with
 * what is believed, which is a read for each. It holds as long as no other operation has had its say, and whoever relies
 * on it asks that of the rows, in the write.
 */
export interface BeliefMemory {
  /**
   * @param print of the results of an apply
   * @returns the operation whose results said the same; null when what is believed has to be read
   */
  sameAs(nodeId: string, print: string | null): string | null;
  /** Remembers an apply that succeeded, after it was committed. */
  remember(nodeId: string, print: string, operationId: string): void;
  forget(nodeId: string): void;
}

/** Beyond it the oldest are forgotten. */
const kept = 20_000;

export function createBeliefMemory(): BeliefMemory {
  const last = new Map<string, { print: string; operationId: string }>();
  return {
    sameAs(nodeId, print) {
      const known = last.get(nodeId);
      return known !== undefined && known.print === print ? known.operationId : null;
    },
    remember(nodeId, print, operationId) {
      const known = last.get(nodeId);
      if (known) {
        known.print = print;
        known.operationId = operationId;
        return;
      }
      if (last.size >= kept) last.delete(last.keys().next().value as string);
      last.set(nodeId, { print, operationId });
    },
    forget: (nodeId) => void last.delete(nodeId),
  };
}

/**
 * What results say that is, when they say that all of it was so before.
 * @returns null when something was done, or failed, or is to be gone, or is told of twice
 */
export function printOf(results: readonly ResourceResult[]): string | null {
  const said: (string | null)[] = [];
  const keys = new Set<string>();
  for (const { action, status, module, id, type, identity } of results) {
    if (status !== 'unchanged' || action === 'remove') return null;
    keys.add(keyOf(type, identity));
    said.push(module, id, type, identity);
  }
  if (keys.size !== results.length) return null;
  return createHash('sha256').update(JSON.stringify(said)).digest('base64');
}
