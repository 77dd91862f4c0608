import { ApiError } from '@muster/protocol/client';

/**
 * Returns how long to wait before the next attempt to attach, in milliseconds.
 * @param failures consecutive failed attempts
 */
export const reattachDelayMs = (failures: number, maxMs: number): number => Math.min(250 * 2 ** failures, maxMs);

/** Milliseconds after which a connection is considered stable and resets the delay. */
export const stableConnectionMs = 10_000;

/**
 * Reports whether the orchestrator refused to attach for a permanent reason. A rate limit, a limit on open terminals,
 * an expired ticket, and an internal error in the orchestrator are temporary.
 */
export function isFinalRefusal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  const { status, code } = error.problem;
  return status < 500 && status !== 429 && code !== 'terminal_limit' && code !== 'ticket_invalid';
}
