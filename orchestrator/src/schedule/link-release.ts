import type { Clock } from '../../../lib/src/clock.ts';

/** Lets the agents of a replica go that cannot serve them, at a steady rate, so that others admit them without a burst. */

const intervalMs = 250;

/**
 * Milliseconds after the last heartbeat at which a replica has lost the database: two heartbeats have failed,
 * each after at most three seconds. After one, the replica is only not ready, and gets no new agents.
 */
export const lostAfterMs = 9_000;

/** Maximum milliseconds between two checks of a process that runs. After a longer gap, it was suspended. */
const maxGapMs = 1_000;

/** Milliseconds that a process which was suspended has for a heartbeat. */
const resumeMs = 4_000;

/** What decides whether a replica lets its agents go. */
export interface ReplicaSituation {
  /** Whether an operator drains the replica. */
  readonly draining: boolean;
  /** Milliseconds since the last heartbeat of this replica. */
  readonly beatAgeMs: number;
  /** Milliseconds for which the process has run without having been suspended. */
  readonly runningMs: number;
  /** Whether another replica was ready when the others were last read. */
  readonly hasReadyPeer: boolean;
}

/**
 * Returns whether the agents should connect to other replicas. A replica without a recent heartbeat has lost the database.
 * Without another one that is ready, it keeps its agents, because they could connect nowhere else. A process that was suspended first tries
 * to send a heartbeat.
 */
export const letsAgentsGo = ({ draining, beatAgeMs, runningMs, hasReadyPeer }: ReplicaSituation): boolean =>
  draining || (hasReadyPeer && beatAgeMs >= lostAfterMs && runningMs >= resumeMs);

export interface LinkReleaseParts {
  readonly clock: Clock;
  readonly situation: () => Omit<ReplicaSituation, 'runningMs'>;
  /** Links to close in each second. */
  readonly perSecond: () => number;
  /** Lets this many agents go. @returns the number of agents that were still connected, up to `count` */
  readonly release: (count: number) => number;
  /** Called when agents begin to be let go. */
  readonly onBegin: (situation: ReplicaSituation) => void;
}

/** Checks the situation until it is stopped. @returns a function that stops it */
export function startLinkRelease({ clock, situation, perSecond, release, onBegin }: LinkReleaseParts): () => void {
  let cancelTimer = () => {};
  let begun = false;
  /** Part of a link that the rate allowed in earlier intervals. */
  let rest = 0;
  let lastAt = clock.monotonic();
  let runningSince = lastAt;
  const tick = () => {
    const at = clock.monotonic();
    if (at - lastAt > maxGapMs) runningSince = at;
    lastAt = at;
    const now = { ...situation(), runningMs: at - runningSince };
    if (letsAgentsGo(now)) {
      if (!begun) onBegin(now);
      begun = true;
      const allowed = rest + (perSecond() * intervalMs) / 1000;
      rest = allowed % 1;
      release(Math.floor(allowed));
    } else {
      begun = false;
      rest = 0;
    }
    schedule();
  };
  const schedule = () => {
    cancelTimer = clock.after(intervalMs, tick);
  };
  schedule();
  return () => cancelTimer();
}
