import type { Attempt } from './delivery.ts';

/** What follows from a failed attempt: when the channel is tried again, and whether to say that it keeps failing. */

/** The first wait; each further one is twice as long. */
const firstWaitMs = 2_000;
const longestWaitMs = 600_000;
/** The longest that a far end may ask us to wait, and longer than any wait of our own. */
export const longestPauseMs = 3_600_000;
/** A channel that has failed so often without a delivery in between is said to be failing: half a minute, or so. */
const failuresToTell = 5;
/** Answers that blame the message. One of those must not hold up all that come after it. */
const blaming: readonly number[] = [400, 413, 414, 422];
const blamesToDrop = 3;

export interface FailingBefore {
  /** Failed attempts of the channel since one was delivered. */
  readonly failures: number;
  /** Unix seconds; null: it has not been called failing. */
  readonly failing_since: number | null;
  /** Failed attempts of this message. */
  readonly attempts: number;
}

export interface AfterFailure {
  readonly failures: number;
  readonly retryAtMs: number;
  /** It is to be called failing now. */
  readonly tell: boolean;
  /** The message is given up. */
  readonly drop: boolean;
}

/** @param random in [0, 1) */
export function afterFailure(before: FailingBefore, attempt: Attempt, nowMs: number, random: number): AfterFailure {
  const failures = before.failures + 1;
  const whole = Math.min(firstWaitMs * 2 ** Math.min(before.failures, 30), longestWaitMs);
  // Half of it is chance: channels that failed together do not come back together.
  const wait = whole / 2 + (whole / 2) * random;
  const asked = attempt.status === null ? 0 : Math.min(attempt.retryAfterMs ?? 0, longestPauseMs);
  return {
    failures,
    retryAtMs: Math.ceil(nowMs + Math.max(wait, asked)),
    tell: before.failing_since === null && failures >= failuresToTell,
    drop: attempt.status !== null && blaming.includes(attempt.status) && before.attempts + 1 >= blamesToDrop,
  };
}
