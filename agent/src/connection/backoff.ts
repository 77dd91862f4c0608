import { limits, type RefusalCode } from '@muster/protocol/wire';

/** How a link, or the attempt to get one, ended. */
export interface LinkEnd {
  /** Milliseconds from the welcome to the end; 0 when there was none. */
  livedMs: number;
  /** What the orchestrator asked for, if it did. */
  retryAfterSecs: number | null;
  /** Null: nobody refused this agent. */
  refused: RefusalCode | null;
}

/** What earlier attempts came to. */
export interface Waits {
  /** Failed attempts and short links since the last stable link. */
  attempts: number;
  /** Short links in a row. */
  shortLinks: number;
  /** Monotonic milliseconds at the end of the last link, or at the start of an agent that had one before; null: there was none. */
  linkedAt: number | null;
}

export const noWaits: Waits = { attempts: 0, shortLinks: 0, linkedAt: null };

/** Refusals that say nothing about this agent: the orchestrator, this machine or the network between is slow or in trouble. */
const busyRefusals: ReadonlySet<RefusalCode> = new Set(['draining', 'hello_timeout', 'unavailable']);

/**
 * How long to wait before dialling again: between half of an exponential ceiling and all of it, so that agents that lost
 * their links together do not come back together, and no attempt is wasted in the first moment. As long as the last link
 * is not long ago, the ceiling stays at seconds: an orchestrator that restarts is back soon, and admits its agents as fast
 * as it can. An orchestrator that is busy gets those seconds at once, and its agents' patience after five minutes. Other
 * refusals, and links that end again and again before they are stable, have the long ceiling. What the orchestrator asked
 * for wins, with a little jitter on top.
 * @param random in [0, 1)
 * @param now    monotonic milliseconds
 * @returns the wait in milliseconds, and what to hand in next time
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
  const asked = end.retryAfterSecs === null ? null : end.retryAfterSecs * 1000 * (1 + random / 10);
  const waitMs = asked === null ? own : isBusy ? Math.max(asked, own) : asked;
  return { waitMs, waits: { attempts: attempts + 1, shortLinks, linkedAt } };
}
