import { ApiError } from '@muster/protocol/client';

/** Milliseconds to wait before attaching again, after this many failed attempts. */
export const reattachDelayMs = (failures: number, maxMs: number): number => Math.min(250 * 2 ** failures, maxMs);

/** A connection that lasts this long resets the delay. */
export const stableConnectionMs = 10_000;

/**
 * @returns whether the orchestrator refused to attach for a permanent reason. A rate limit, a limit on open terminals, an
 *   expired ticket, and an internal error of the orchestrator are temporary.
 */
export function isFinalRefusal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  const { status, code } = error.problem;
  return status < 500 && status !== 429 && code !== 'terminal_limit' && code !== 'ticket_invalid';
}
