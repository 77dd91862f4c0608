import type { Agent } from '@muster/protocol/http';
import type { Tone } from '../../parts/badge.tsx';

export const agentStates = ['connected', 'offline', 'pending', 'rejected'] as const;
export type AgentState = (typeof agentStates)[number];

/** Returns an agent's state. `offline` means that the agent is approved and has no link. */
export function stateOf({ status, connected }: Pick<Agent, 'status' | 'connected'>): AgentState {
  if (status !== 'approved') return status;
  return connected ? 'connected' : 'offline';
}

export const tones: Record<AgentState, Tone> = {
  connected: 'good',
  offline: 'bad',
  pending: 'warn',
  rejected: 'neutral',
};

/** Returns the time at which the agent entered its state, in Unix seconds. */
export const stateSince = (agent: Agent): number => (agent.connected ? agent.connected_at : agent.last_seen_at);

export const displayName = ({ name, initial_hostname, node_id }: Agent): string =>
  name ?? (initial_hostname || node_id);

/** Returns an agent's name or id for its page's URL. */
export const agentParam = ({ name, node_id, status }: Agent): string =>
  status === 'approved' && name !== null ? name : node_id;

/** Returns the operating system and its version as reported by the agent. */
export function systemText({ attributes }: Agent): string {
  const of = (key: string) => (Object.hasOwn(attributes, key) ? attributes[key] : undefined);
  return [of('distro') ?? of('platform'), of('version')].filter(Boolean).join(' ');
}

/** Explains how to allow terminals on a machine whose agent reports that it allows none. */
export const terminalsDisabledText =
  'Terminals are disabled on this machine. To enable them, set remote_terminal.enabled in the configuration of its agent.';

/** Reports whether an agent offers no terminals. Agents with version 0.1 do not report this. */
export const hasTerminalsDisabled = ({ attributes }: Pick<Agent, 'attributes'>): boolean =>
  Object.hasOwn(attributes, 'remote_terminal') && attributes.remote_terminal === 'false';
