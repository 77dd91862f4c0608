import type { Clock } from '../../../lib/src/clock.ts';

/**
 * Closes the links of a replica that cannot serve its agents, at a steady rate, so that the agents do not reconnect to
 * other replicas in a burst.
 */

const intervalMs = 250;

/**
 * Milliseconds without a successful heartbeat after which a replica has lost the database: two heartbeats have failed,
 * each after at most three seconds. After one failed heartbeat, the replica is not ready and gets no new agents, but
 * keeps its links.
 */
export const lostAfterMs = 9_000;

/**
 * Maximum milliseconds between two checks while the process runs. A longer gap means that the process was suspended.
 */
const maxGapMs = 1_000;

/** Milliseconds in which a process that was suspended can send a heartbeat before it closes links. */
const resumeMs = 4_000;

/** Conditions that determine whether a replica closes its links. */
export interface ReplicaSituation {
  /** Whether an operator is draining the replica. */
  readonly draining: boolean;
  /** Milliseconds since the last heartbeat of this replica. */
  readonly beatAgeMs: number;
  /** Milliseconds for which the process has run without having been suspended. */
  readonly runningMs: number;
  /** Whether another replica was ready when the other replicas were last read. */
  readonly hasReadyPeer: boolean;
}

/**
 * Reports whether the agents should connect to other replicas. A replica without a recent heartbeat has lost the
 * database. If no other replica is ready, it keeps its agents, because they could not connect anywhere else. A process
 * that was suspended first tries to send a heartbeat.
 */
export const letsAgentsGo = ({ draining, beatAgeMs, runningMs, hasReadyPeer }: ReplicaSituation): boolean =>
  hasReadyPeer && (draining || (beatAgeMs >= lostAfterMs && runningMs >= resumeMs));

export interface LinkReleaseParts {
  readonly clock: Clock;
  readonly situation: () => Omit<ReplicaSituation, 'runningMs'>;
  /** Number of links to close per second. */
  readonly perSecond: () => number;
  /** Closes up to `count` links. @returns the number of closed links */
  readonly release: (count: number) => number;
  /** Called before the first link is closed. */
  readonly onBegin: (situation: ReplicaSituation) => void;
}

/** Checks the conditions periodically, and closes links while they apply. @returns a function that stops the checks */
export function startLinkRelease({ clock, situation, perSecond, release, onBegin }: LinkReleaseParts): () => void {
  let cancelTimer = () => {};
  let begun = false;
  /** Fraction of a link left over from the previous interval's rate. */
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
