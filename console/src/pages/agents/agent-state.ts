import type { Agent } from '@muster/protocol/http';
import type { Tone } from '../../parts/badge.tsx';

/** Computes display values of agents. Pure. */

export const agentStates = ['connected', 'away', 'pending', 'rejected'] as const;
export type AgentState = (typeof agentStates)[number];

/**
 * The state of an agent. `away` means approved and not connected. The overview counts agents as lost after they are away for
 * longer than the grace period.
 */
export function stateOf({ status, connected }: Pick<Agent, 'status' | 'connected'>): AgentState {
  if (status !== 'approved') return status;
  return connected ? 'connected' : 'away';
}

export const tones: Record<AgentState, Tone> = {
  connected: 'good',
  away: 'bad',
  pending: 'warn',
  rejected: 'neutral',
};

/** The time at which the agent entered its state, in Unix seconds. */
export const stateSince = (agent: Agent): number => (agent.connected ? agent.connected_at : agent.last_seen_at);

export const displayName = ({ name, initial_hostname, node_id }: Agent): string =>
  name ?? (initial_hostname || node_id);

/** The name or id of an agent for links to its page. */
export const agentParam = ({ name, node_id, status }: Agent): string =>
  status === 'approved' && name !== null ? name : node_id;

/** The operating system and its version, as the agent reports them. */
export function systemText({ attributes }: Agent): string {
  const of = (key: string) => (Object.hasOwn(attributes, key) ? attributes[key] : undefined);
  return [of('distro') ?? of('platform'), of('version')].filter(Boolean).join(' ');
}
