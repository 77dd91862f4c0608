import type { Agent } from '@muster/protocol/http';
import type { Tone } from '../../parts/badge.tsx';

/** How an agent stands, as one looks for it. Pure. */

export const agentStates = ['connected', 'away', 'pending', 'rejected'] as const;
export type AgentState = (typeof agentStates)[number];

/** Away: approved and not connected now. Lost is who is away for longer than the grace time, and only the overview counts them. */
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

/** Since when it is as it is: what is known of an agent that is not connected is as old as that. */
export const sinceOf = (agent: Agent): number => (agent.connected ? agent.connected_at : agent.last_seen_at);

/** What people call it. */
export const calledOf = ({ name, initial_hostname, node_id }: Agent): string => name ?? (initial_hostname || node_id);

/** How it is called in addresses. */
export const addressOf = ({ name, node_id, status }: Agent): string =>
  status === 'approved' && name !== null ? name : node_id;

/** As it says of itself: the system and its version. */
export function systemOf({ attributes }: Agent): string {
  const of = (key: string) => (Object.hasOwn(attributes, key) ? attributes[key] : undefined);
  return [of('distro') ?? of('platform'), of('version')].filter(Boolean).join(' ');
}
