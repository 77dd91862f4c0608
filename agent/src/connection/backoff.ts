import { limits } from '@muster/protocol/wire';

/** How a link, or the attempt to get one, ended. */
export interface LinkEnd {
  /** Milliseconds from the welcome to the end; 0 when there was none. */
  livedMs: number;
  /** What the orchestrator asked for, if it did. */
  retryAfterSecs: number | null;
}

/** Failed attempts since the last stable link. */
export type Attempts = number;

/**
 * How long to wait before dialling again: full jitter under an exponential ceiling, so that agents that lost their
 * links together do not come back together. What the orchestrator asked for wins, with a little jitter on top.
 * @param random in [0, 1)
 * @returns the wait in milliseconds, and the attempts to hand in next time
 */
export function backOff(attempts: Attempts, end: LinkEnd, random: number): { waitMs: number; attempts: Attempts } {
  const failed = end.livedMs >= limits.stableLinkMs ? 0 : attempts;
  const ceiling = Math.min(limits.reconnectCapMs, limits.reconnectBaseMs * 2 ** Math.min(failed, 30));
  const waitMs = end.retryAfterSecs === null ? random * ceiling : end.retryAfterSecs * 1000 * (1 + random / 10);
  return { waitMs, attempts: failed + 1 };
}
