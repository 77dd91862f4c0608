import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';

/** How often it is looked whether the clock of this machine was set. */
const lookMs = 60_000;
/** Smaller steps are what keeps a clock right. */
const worthTellingMs = 5_000;

/**
 * Notices when the clock of this machine is set while the agent runs. All that the agent waits for goes by the monotonic
 * clock and is not moved by it; but the orchestrator shows by how much the clocks differ.
 * @param changed called when it was set
 * @returns ends it
 */
export function watchClock(clock: Clock, log: Log, changed: () => void): () => void {
  const offset = () => clock.now() - clock.monotonic();
  let known = offset();
  let callOff = () => {};
  const next = () => {
    callOff = clock.after(lookMs, () => {
      const by = offset() - known;
      if (Math.abs(by) >= worthTellingMs) {
        known += by;
        log.warn({ by_ms: Math.round(by) }, 'the clock of this machine was set');
        changed();
      }
      next();
    });
  };
  next();
  return () => callOff();
}
