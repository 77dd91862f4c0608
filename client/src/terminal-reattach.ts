import { ApiError } from '@muster/protocol/client';

/**
 * Returns how long to wait before the next attempt to attach, in milliseconds.
 * @param failures consecutive failed attempts
 */
export const reattachDelayMs = (failures: number, maxMs: number): number => Math.min(250 * 2 ** failures, maxMs);

/** Milliseconds after which a connection is considered stable and resets the delay. */
export const stableConnectionMs = 10_000;

const temporary: ReadonlySet<string> = new Set(['terminal_limit', 'ticket_invalid', 'terminal_at_other_replica']);

/**
 * Reports whether the orchestrator refused to attach for a permanent reason. A rate limit, a limit on open terminals,
 * an expired ticket, a replica that does not answer or has just ended, and an internal error in the orchestrator are
 * temporary.
 */
export function isFinalRefusal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  const { status, code } = error.problem;
  return status < 500 && status !== 429 && !temporary.has(code);
}
