import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';

/** What the tools of a package database are run with. */
export interface PackageToolContext {
  clock: Clock;
  limits: { packageMs: number; packageLockMs: number; outputBytes: number };
  stop: AbortSignal;
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  warn(message: string): void;
}

/** How often a lock is tried. Milliseconds. */
const lockPauseMs = 1000;

/**
 * Tries again for as long as somebody else holds the lock of the package database and there is patience for it.
 * @param isLocked whether a result says that somebody does
 * @throws HostFailure when the agent stops meanwhile
 */
export async function untilUnlocked<T>(
  run: () => Promise<T>,
  { clock, limits, stop }: Pick<PackageToolContext, 'clock' | 'limits' | 'stop'>,
  isLocked: (result: T) => boolean,
): Promise<T> {
  const deadline = clock.monotonic() + limits.packageLockMs;
  for (;;) {
    const result = await run();
    if (!isLocked(result) || clock.monotonic() > deadline) return result;
    if (stop.aborted) throw new HostFailure('given up waiting for a lock, because the agent stops');
    await new Promise<void>((resolve) => clock.after(lockPauseMs, resolve));
  }
}
