import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { type Replica, ReplicaClosed } from '../domain/replicas/replicas.ts';

/** Milliseconds between two heartbeats. Other processes close this one if they see no heartbeat for 10 seconds. */
const intervalMs = 2_000;

/**
 * Sends heartbeats for this process until they are stopped.
 * @param onClosed called when another process has closed this one, which must then exit
 * @returns a function that stops the heartbeats and removes this process from the database
 */
export function startBeats(
  replica: Replica,
  { clock, log, onClosed }: { clock: Clock; log: Log; onClosed: (reason: Error) => void },
): () => Promise<void> {
  let stopped = false;
  let cancelTimer = () => {};
  let beating: Promise<void> = Promise.resolve();
  const beat = async () => {
    try {
      await replica.beat();
    } catch (error) {
      if (!(error instanceof ReplicaClosed)) log.warn({ err: error }, 'failed to record the heartbeat; will retry');
      else if (!stopped) {
        stopped = true;
        onClosed(error);
      }
    }
    if (!stopped) schedule();
  };
  const schedule = () => {
    cancelTimer = clock.after(intervalMs, () => {
      beating = beat();
    });
  };
  schedule();
  return async () => {
    stopped = true;
    cancelTimer();
    await beating;
    // Stopping must succeed even if the database is unavailable. In this case, the other processes close this one.
    await replica.leave().catch((error: unknown) => log.warn({ err: error }, 'failed to deregister this replica'));
  };
}
