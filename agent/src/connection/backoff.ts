import { limits, type RefusalCode } from '@muster/protocol/wire';

/** Outcome of a link, or of an attempt to establish one. */
export interface LinkEnd {
  /** Milliseconds from the welcome until the link was closed; 0 if there was no welcome. */
  livedMs: number;
  retryAfterSecs: number | null;
  refused: RefusalCode | null;
}

/** State of the backoff after earlier attempts. */
export interface Waits {
  /** Failed attempts and short links since the last stable link. */
  attempts: number;
  /** Number of consecutive short links. */
  shortLinks: number;
  /**
   * Monotonic milliseconds when the last link was closed, or when this process started if an earlier process had a
   * link; null if the agent has never had a link.
   */
  linkedAt: number | null;
}

export const noWaits: Waits = { attempts: 0, shortLinks: 0, linkedAt: null };

/** Refusals caused by a slow orchestrator, machine, or network rather than by this agent. */
const busyRefusals: ReadonlySet<RefusalCode> = new Set(['draining', 'hello_timeout', 'unavailable']);

/**
 * Computes the wait before the next attempt: a random value between half of an exponential ceiling and the full
 * ceiling, so that agents that lost their links at the same time do not reconnect at the same time. Shortly after a
 * link, the ceiling is a few seconds, because a restarting orchestrator is back soon and limits the admission rate of
 * agents itself. If the orchestrator is busy, waits are short at first and longer after five minutes. Other refusals,
 * and repeated links that break before they are stable, get the long ceiling. A delay that the orchestrator requested
 * takes precedence, with a little jitter.
 * @param random a number in [0, 1)
 * @param now monotonic time in milliseconds
 * @returns the wait in milliseconds, and the state for the next call
 */
export function backOff(before: Waits, end: LinkEnd, random: number, now: number): { waitMs: number; waits: Waits } {
  const isBusy = end.refused !== null && busyRefusals.has(end.refused);
  const isRefused = end.refused !== null && !isBusy;
  const isStable = end.livedMs >= limits.stableLinkMs;
  const isShort = end.livedMs > 0 && !isStable;
  const attempts = isStable ? 0 : before.attempts;
  const shortLinks = isStable ? 0 : before.shortLinks + (isShort ? 1 : 0);
  const linkedAt = end.livedMs > 0 && !isRefused ? now : before.linkedAt;
  const isRecent =
    linkedAt !== null && now - linkedAt < limits.recentLinkMs && shortLinks <= limits.shortLinks && !isRefused;
  const cap = isRecent ? limits.recentReconnectCapMs : limits.reconnectCapMs;
  const floor = isBusy ? limits.recentReconnectCapMs : limits.reconnectBaseMs;
  const ceiling = Math.min(cap, Math.max(floor, limits.reconnectBaseMs * 2 ** Math.min(attempts, 30)));
  const own = (ceiling * (1 + random)) / 2;
  const requestedMs = end.retryAfterSecs === null ? null : end.retryAfterSecs * 1000 * (1 + random / 10);
  const waitMs = requestedMs === null ? own : isBusy ? Math.max(requestedMs, own) : requestedMs;
  return { waitMs, waits: { attempts: attempts + 1, shortLinks, linkedAt } };
}
