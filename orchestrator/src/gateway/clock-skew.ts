import type { Log } from '../log.ts';
import type { Link } from './link.ts';

/**
 * How far the clock of an agent is from this one. Nothing goes by an agent's clock: what expires, and when something was
 * seen, began or ended, goes by this one. It is told because logs and certificates on that machine are off as well.
 */

/** What an agent is shown to be off by; only there when it is. */
const attribute = 'clock_skew_secs';
/** The way of the hello, and a busy machine, take a moment. */
const noticeableSecs = 10;

/** @returns whole seconds by which the agent's clock is ahead; null when it did not tell */
export const skewOf = (agentMs: number | undefined, nowMs: number): number | null =>
  agentMs === undefined ? null : Math.round((agentMs - nowMs) / 1000);

const isNoticeable = (skew: number | null): skew is number => skew !== null && Math.abs(skew) >= noticeableSecs;

/** The attributes of an agent with what is known here of its clock. What it says of that itself counts for nothing. */
export function withSkew(attributes: Record<string, string>, skew: number | null): Record<string, string> {
  const { [attribute]: _, ...others } = attributes;
  return isNoticeable(skew) ? { ...others, [attribute]: String(skew) } : others;
}

/** Tells the log, unless that knows. */
export function warnOfSkew(log: Log, link: Pick<Link, 'nodeId' | 'clockSkewSecs' | 'loggedClockSkewSecs'>): void {
  const { nodeId, clockSkewSecs, loggedClockSkewSecs } = link;
  if (loggedClockSkewSecs !== null && !isNoticeable((clockSkewSecs ?? 0) - loggedClockSkewSecs)) return;
  link.loggedClockSkewSecs = clockSkewSecs;
  if (!isNoticeable(clockSkewSecs)) return;
  const way = clockSkewSecs > 0 ? 'ahead of' : 'behind';
  log.warn(
    { node_id: nodeId, clock_skew_secs: clockSkewSecs },
    `the clock of this agent is ${Math.abs(clockSkewSecs)} s ${way} the clock of the orchestrator; recorded times are those of the orchestrator`,
  );
}
