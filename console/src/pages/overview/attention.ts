import type { Overview } from '@muster/protocol/http';
import type { SyncState } from '@muster/protocol/sync-state';
import type { OffFinding } from '../../../../client/src/reason-words.ts';
import type { StateTone } from '../../parts/badge.tsx';
import { countedText as counted } from '../../parts/count.ts';
import { findingTones, syncTones, syncWords } from '../reconcile/sync-tones.ts';

/** Items that need attention, most urgent first: failures, then decisions, then what can wait. */

export interface Need {
  readonly id: string;
  readonly tone: StateTone;
  /** Number of agents or secrets. */
  readonly count: number;
  readonly title: string;
  /** The link's label. */
  readonly action: string;
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
  /** If set, the overview can directly apply to all agents with this finding. */
  readonly repairs?: OffFinding;
  /** Whether the overview can approve the agents directly. */
  readonly isApproval?: true;
}

/** @param now Unix milliseconds */
export function needsOf({ agents, off, drift, desired_state, secrets_expiring }: Overview, now: number): Need[] {
  const { outdated = 0 } = desired_state;
  const expired = secrets_expiring.filter(({ expires_at }) => Date.parse(expires_at) <= now);
  const soon = secrets_expiring.filter(({ expires_at }) => Date.parse(expires_at) > now);
  const offline = agents.approved - agents.connected;
  const needs: Need[] = [
    {
      ...{ id: 'apply_failed', tone: findingTones.apply_failed, count: off.apply_failed, action: 'See why' },
      title: counted(off.apply_failed, 'agent failed its last apply', 'agents failed their last apply'),
      ...{ to: '/out-of-sync', search: { reason: 'apply_failed' } },
    },
    {
      ...{ id: 'offline', tone: 'bad', count: offline, action: 'See which' },
      title: counted(offline, 'agent is offline', 'agents are offline'),
      ...{ to: '/agents', search: { status: 'offline', sort: 'state' } },
    },
    {
      ...{ id: 'expired', tone: 'bad', count: expired.length, action: 'Renew' },
      title: counted(expired.length, 'secret has expired', 'secrets have expired'),
      to: '/secrets',
    },
    {
      ...{ id: 'drift_failed', tone: findingTones.drift_failed, count: drift.failed, action: 'See why' },
      title: counted(drift.failed, 'agent could not be checked', 'agents could not be checked'),
      ...{ to: '/out-of-sync', search: { reason: 'drift_failed' } },
    },
    {
      ...{ id: 'pending', tone: 'warn', count: agents.pending, action: 'See which' },
      title: counted(agents.pending, 'agent pending approval', 'agents pending approval'),
      ...{ to: '/agents', search: { status: 'pending' }, isApproval: true },
    },
    {
      ...{ id: 'drifted', tone: findingTones.drifted, count: off.drifted, action: 'See which', repairs: 'drifted' },
      title: counted(off.drifted, 'agent has drifted', 'agents have drifted'),
      ...{ to: '/out-of-sync', search: { reason: 'drifted' } },
    },
    {
      ...{ id: 'expiring', tone: 'warn', count: soon.length, action: 'Renew' },
      title: counted(soon.length, 'secret expires within 30 days', 'secrets expire within 30 days'),
      to: '/secrets',
    },
    {
      ...{ id: 'outdated', tone: findingTones.outdated, count: outdated, action: 'See which', repairs: 'outdated' },
      title: counted(outdated, 'agent is outdated', 'agents are outdated'),
      ...{ to: '/out-of-sync', search: { tab: 'outdated' } },
    },
  ];
  return needs.filter(({ count }) => count > 0);
}

export interface Share {
  readonly id: string;
  readonly label: string;
  readonly count: number;
  readonly tone: StateTone;
}

interface SyncShare extends Share {
  readonly id: SyncState;
}

/** Counts agents by state, each agent once, with the same labels and numbers as the agents page. */
export function agentShares({ agents: { approved, connected, pending, rejected } }: Overview): Share[] {
  const shares: Share[] = [
    { id: 'connected', label: 'connected', count: connected, tone: 'good' },
    { id: 'offline', label: 'offline', count: Math.max(0, approved - connected), tone: 'bad' },
    { id: 'pending', label: 'pending', count: pending, tone: 'warn' },
    { id: 'rejected', label: 'rejected', count: rejected, tone: 'neutral' },
  ];
  return shares.filter(({ id, count }) => id !== 'rejected' || count > 0);
}

/** Returns the number of all agents, as on the agents page. */
export const agentCount = ({ agents: { approved, pending, rejected } }: Overview): number =>
  approved + pending + rejected;

/** Counts approved agents by sync state, each agent once. */
export function syncShares({ desired_state }: Overview): SyncShare[] {
  const { in_sync, outdated = 0, ...others } = desired_state;
  // The orchestrator also counts outdated agents as in sync.
  const counts: Readonly<Record<SyncState, number>> = { ...others, in_sync: in_sync - outdated, outdated };
  return syncOrder.map((id) => ({ id, label: syncWords[id], count: counts[id], tone: syncTones[id] }));
}

const syncOrder = ['in_sync', 'out_of_sync', 'outdated', 'accepted', 'never_applied'] as const;
