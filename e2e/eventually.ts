import { setTimeout as sleep } from 'node:timers/promises';
import { hasEnded } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { getOperation, type Operation } from '@muster/protocol/http';

/**
 * How long to wait before asking again, in milliseconds: a tenth of the wait so far. Each question costs the process that
 * is waited for, and this one, about a millisecond of CPU time; six test files ask at a time.
 */
const pause = (waitedMs: number) => Math.min(100, Math.max(20, waitedMs / 10));

/**
 * Polls until there is an answer: for conditions that cannot be awaited, since the process that would report may be dead.
 * @param ask returns null, or throws, while the condition is false
 * @throws Error with the last reason at the timeout
 */
export async function eventually<T>(what: string, ask: () => Promise<T | null>, timeoutMs = 120_000): Promise<T> {
  const began = performance.now();
  let reason: unknown = null;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== null) return answer;
      reason = null;
    } catch (error) {
      reason = error;
    }
    const waitedMs = performance.now() - began;
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause: reason });
    await sleep(pause(waitedMs));
  }
}

/** The operation, once nothing can change it any more. */
export const ended = (call: Client, operationId: string): Promise<Operation> =>
  eventually(`operation ${operationId} has ended`, async () => {
    const operation = await call(getOperation, { params: { operation_id: operationId } });
    return hasEnded(operation.status) ? operation : null;
  });
