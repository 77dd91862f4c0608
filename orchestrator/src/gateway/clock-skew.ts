import type { Log } from '../../../lib/src/log.ts';
import type { Link } from './link.ts';

/**
 * The difference between the clocks of an agent and the orchestrator. Expiry and recorded times use the orchestrator's
 * clock. The difference still affects logs and certificates on the machine, so it is reported.
 */

/** Attribute that contains the difference in seconds. Set only if the difference is noticeable. */
const attribute = 'clock_skew_secs';
/** Smaller differences may result from network or processing delays. */
const noticeableSecs = 10;

/** @returns whole seconds by which the agent's clock is ahead; null if the agent sent no time */
export const skewOf = (agentMs: number | undefined, nowMs: number): number | null =>
  agentMs === undefined ? null : Math.round((agentMs - nowMs) / 1000);

const isNoticeable = (skew: number | null): skew is number => skew !== null && Math.abs(skew) >= noticeableSecs;

/** Adds the measured difference to the attributes of an agent, and removes any value that the agent sent for it. */
export function withSkew(attributes: Record<string, string>, skew: number | null): Record<string, string> {
  const { [attribute]: _, ...others } = attributes;
  return isNoticeable(skew) ? { ...others, [attribute]: String(skew) } : others;
}

/** Logs a noticeable difference, unless a similar difference was logged last. */
export function warnOfSkew(log: Log, link: Pick<Link, 'nodeId' | 'clockSkewSecs' | 'loggedClockSkewSecs'>): void {
  const { nodeId, clockSkewSecs, loggedClockSkewSecs } = link;
  if (loggedClockSkewSecs !== null && !isNoticeable((clockSkewSecs ?? 0) - loggedClockSkewSecs)) return;
  link.loggedClockSkewSecs = clockSkewSecs;
  if (!isNoticeable(clockSkewSecs)) return;
  const way = clockSkewSecs > 0 ? 'ahead of' : 'behind';
  log.warn(
    { node_id: nodeId, clock_skew_secs: clockSkewSecs },
    `the clock of this agent is ${Math.abs(clockSkewSecs)} s ${way} the orchestrator's clock; recorded times use the orchestrator's clock`,
  );
}
