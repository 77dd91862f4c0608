import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { type Replica, ReplicaClosed } from '../domain/replicas/replicas.ts';

/** Milliseconds between two heartbeats. Other processes close this process if they see no heartbeat for 10 seconds. */
const intervalMs = 2_000;

export interface BeatParts {
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Whether other replicas may use the database. If so, the interval is measured from the start of a heartbeat, and no
   * heartbeat waits for the reads of other replicas, because these reads share connections with requests, which may be
   * slow.
   */
  readonly inFleet: boolean;
  /** Called when another process has closed this process, which must then exit. */
  readonly onClosed: (reason: Error) => void;
}

/**
 * Sends heartbeats for this process, and reads the other processes, until they are stopped.
 * @returns a function that stops the heartbeats and removes this process from the database
 */
export function startBeats(replica: Replica, { clock, log, inFleet, onClosed }: BeatParts): () => Promise<void> {
  let stopped = false;
  let cancelTimer = () => {};
  let beating: Promise<void> = Promise.resolve();
  let reading = false;
  const readPeers = () => {
    if (reading) return;
    reading = true;
    void replica
      .readPeers()
      .catch((error: unknown) => {
        if (!stopped) log.warn({ err: error }, 'failed to read the other replicas; will retry');
      })
      .finally(() => {
        reading = false;
      });
  };
  const beat = async () => {
    const startedAt = clock.monotonic();
    try {
      await replica.beat();
      if (inFleet) readPeers();
      else await replica.readPeers();
    } catch (error) {
      if (!(error instanceof ReplicaClosed)) log.warn({ err: error }, 'failed to record the heartbeat; will retry');
      else if (!stopped) {
        stopped = true;
        onClosed(error);
      }
    }
    if (!stopped) schedule(inFleet ? Math.max(0, intervalMs - (clock.monotonic() - startedAt)) : intervalMs);
  };
  const schedule = (ms: number) => {
    cancelTimer = clock.after(ms, () => {
      beating = beat();
    });
  };
  schedule(intervalMs);
  return async () => {
    stopped = true;
    cancelTimer();
    await beating;
    // Stopping must succeed even if the database is unavailable. In this case, the other processes close this process.
    await replica.leave().catch((error: unknown) => log.warn({ err: error }, 'failed to deregister this replica'));
  };
}
