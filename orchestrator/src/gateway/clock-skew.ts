import type { Log } from '../../../lib/src/log.ts';
import type { Link } from './link.ts';

/**
 * The clock skew between an agent and the orchestrator. Expiry and recorded times use the orchestrator's clock. The
 * skew is reported nevertheless, because it affects logs and certificates on the machine.
 */

/** Attribute for the skew in seconds. Set only if the skew is noticeable. */
const attribute = 'clock_skew_secs';
/** A smaller skew may result from network or processing delays. */
const noticeableSecs = 10;

/** @returns how many whole seconds the agent's clock is ahead; null if the agent sent no time */
export const skewOf = (agentMs: number | undefined, nowMs: number): number | null =>
  agentMs === undefined ? null : Math.round((agentMs - nowMs) / 1000);

const isNoticeable = (skew: number | null): skew is number => skew !== null && Math.abs(skew) >= noticeableSecs;

/** Adds the measured skew to an agent's attributes, and removes any value that the agent sent for it. */
export function withSkew(attributes: Record<string, string>, skew: number | null): Record<string, string> {
  const { [attribute]: _, ...others } = attributes;
  return isNoticeable(skew) ? { ...others, [attribute]: String(skew) } : others;
}

/** Logs a noticeable skew unless the last logged skew was similar. */
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
