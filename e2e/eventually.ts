import { setTimeout as sleep } from 'node:timers/promises';
import { hasEnded } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { getOperation, type Operation } from '@muster/protocol/http';
import { FairTime } from '../tools/suite/fair-time.ts';

/** Polling interval in milliseconds: a tenth of the wait so far. Each poll costs both processes about 1 ms of CPU time. */
const pause = (waitedMs: number) => Math.min(100, Math.max(20, waitedMs / 10));

/**
 * Polls until `ask` returns a value. Use for conditions that cannot be awaited, since the process that would report them
 * may be dead.
 * @param ask       returns null, or throws, while the condition is false
 * @param timeoutMs timeout on an idle machine
 * @throws Error with the last reason at the timeout
 */
export async function eventually<T>(what: string, ask: () => Promise<T | null>, timeoutMs = 120_000): Promise<T> {
  const time = new FairTime();
  let reason: unknown = null;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== null) return answer;
      reason = null;
    } catch (error) {
      reason = error;
    }
    const waitedMs = time.elapsedMs();
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause: reason });
    await sleep(pause(waitedMs));
  }
}

/** Waits until an operation has ended and can no longer change. */
export const ended = (call: Client, operationId: string): Promise<Operation> =>
  eventually(`operation ${operationId} has ended`, async () => {
    const operation = await call(getOperation, { params: { operation_id: operationId } });
    return hasEnded(operation.status) ? operation : null;
  });
