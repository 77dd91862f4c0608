import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';

const checkIntervalMs = 60_000;
/** Smaller steps are regular corrections, such as those of NTP. */
const minStepMs = 5_000;

/**
 * Watches for changes to this machine's clock. The agent's timers use the monotonic clock and are not affected, but the
 * orchestrator shows the clock skew.
 * @returns a function that stops watching
 */
export function watchClock(clock: Clock, log: Log, changed: () => void): () => void {
  const offset = () => clock.now() - clock.monotonic();
  let known = offset();
  let cancelCheck = () => {};
  const next = () => {
    cancelCheck = clock.after(checkIntervalMs, () => {
      const stepMs = offset() - known;
      if (Math.abs(stepMs) >= minStepMs) {
        known += stepMs;
        log.warn({ by_ms: Math.round(stepMs) }, "this machine's clock was changed");
        changed();
      }
      next();
    });
  };
  next();
  return () => cancelCheck();
}
