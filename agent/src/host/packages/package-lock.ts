import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';

export interface PackageToolContext {
  clock: Clock;
  limits: { packageMs: number; packageLockMs: number; outputBytes: number };
  stop: AbortSignal;
  cancelled(): boolean;
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  warn(message: string): void;
}

const lockRetryMs = 1000;

/**
 * Retries while another process holds the lock of the package database, for up to `packageLockMs`.
 * @param isLocked whether a result reports a held lock
 * @returns the last result, which may still report a held lock
 * @throws HostFailure, without having changed anything, if the agent stops or the operation is canceled during the
 *   wait
 */
export async function untilUnlocked<T>(
  run: () => Promise<T>,
  { clock, limits, stop, cancelled }: Pick<PackageToolContext, 'clock' | 'limits' | 'stop' | 'cancelled'>,
  isLocked: (result: T) => boolean,
): Promise<T> {
  const giveUp = () => {
    if (stop.aborted) throw new HostFailure('stopped waiting for a lock because the agent is stopping');
    if (cancelled()) throw new HostFailure('stopped waiting for a lock because the operation was canceled');
  };
  const deadline = clock.monotonic() + limits.packageLockMs;
  for (;;) {
    const result = await run();
    if (!isLocked(result) || clock.monotonic() > deadline) return result;
    giveUp();
    await new Promise<void>((resolve) => clock.after(lockRetryMs, resolve));
    giveUp();
  }
}
