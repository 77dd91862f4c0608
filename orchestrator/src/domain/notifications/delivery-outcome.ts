import type { Attempt } from './delivery.ts';

/** Decides when to retry after a failed attempt, and whether to report the channel as failing. */

/** Initial backoff in milliseconds. Doubles with each further failure. */
const minBackoffMs = 2_000;
const maxBackoffMs = 600_000;
/** Maximum pause that a receiver can request, in milliseconds. Longer than any backoff. */
export const longestPauseMs = 3_600_000;
/**
 * Reports whether a channel must not be tried yet. Ignores a pause longer than the maximum, which results from a wrong
 * clock.
 */
export const isBackingOff = (retryAtMs: number, nowMs: number): boolean =>
  retryAtMs > nowMs && retryAtMs - nowMs <= longestPauseMs;

/** Number of consecutive failures after which the channel is reported as failing. This takes about half a minute. */
const failuresToReport = 5;
/** HTTP statuses that reject the message itself. Such a message must not delay later messages. */
const rejecting: readonly number[] = [400, 413, 414, 422];
const blamesToDrop = 3;

export interface FailingBefore {
  /** Number of the channel's failed attempts since the last delivery. */
  readonly failures: number;
  /** Unix seconds; null if the channel was not reported as failing. */
  readonly failing_since: number | null;
  /** Number of failed attempts to send this message. */
  readonly attempts: number;
}

export interface AfterFailure {
  readonly failures: number;
  readonly retryAtMs: number;
  /** Whether to report the channel as failing now. */
  readonly reportFailing: boolean;
  /** Whether to drop the message. */
  readonly drop: boolean;
}

/**
 * Decides when to retry after a failed attempt, and whether to drop the message.
 * @param random number in [0, 1)
 */
export function afterFailure(before: FailingBefore, attempt: Attempt, nowMs: number, random: number): AfterFailure {
  const failures = before.failures + 1;
  const backoff = Math.min(minBackoffMs * 2 ** Math.min(before.failures, 30), maxBackoffMs);
  // Randomizes half of the backoff, so that channels that failed together do not retry together.
  const wait = backoff / 2 + (backoff / 2) * random;
  const requestedWait = attempt.status === null ? 0 : Math.min(attempt.retryAfterMs ?? 0, longestPauseMs);
  return {
    failures,
    retryAtMs: Math.ceil(nowMs + Math.max(wait, requestedWait)),
    reportFailing: before.failing_since === null && failures >= failuresToReport,
    drop: attempt.status !== null && rejecting.includes(attempt.status) && before.attempts + 1 >= blamesToDrop,
  };
}
