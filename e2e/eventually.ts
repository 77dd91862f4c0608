import { setTimeout as sleep } from 'node:timers/promises';
import { hasEnded } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { getOperation, type Operation } from '@muster/protocol/http';
import { FairTime } from '../tools/suite/fair-time.ts';

/**
 * Returns the polling interval in milliseconds: a tenth of the elapsed time, from 20 to 300. Each poll costs both
 * processes about 1 ms of CPU time.
 */
const pause = (waitedMs: number) => Math.min(300, Math.max(20, waitedMs / 10));

/**
 * Polls until `ask` returns a value. Intended for conditions that no event reports reliably, because the reporting
 * process may be dead.
 * @param what      the condition as a statement, for the error message
 * @param ask       returns null or throws while the condition does not hold; the type excludes false, which would stop
 * the wait
 * @param timeoutMs timeout on an idle machine; longer on a busy one
 * @returns the value from `ask`
 * @throws Error on timeout, with the last error from `ask` as its cause
 */
export async function eventually<T extends object | string | number | true | undefined>(
  what: string,
  ask: () => Promise<T | null>,
  timeoutMs = 120_000,
): Promise<T> {
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
    if (waitedMs > timeoutMs) throw new Error(`condition not met within ${timeoutMs} ms: ${what}`, { cause: reason });
    await sleep(pause(waitedMs));
  }
}

/**
 * Waits until an operation has ended.
 * @returns the operation
 */
export const ended = (call: Client, operationId: string): Promise<Operation> =>
  eventually(`operation ${operationId} has ended`, async () => {
    const operation = await call(getOperation, { params: { operation_id: operationId } });
    return hasEnded(operation.status) ? operation : null;
  });
