import { maxSecretsExpiring, type Overview, secretsExpiringWithinDays } from '@muster/protocol/http';
import { decideSyncState, type SyncState } from '@muster/protocol/sync-state';
import {
  agentsByLatestDrift,
  agentsNeverApplied,
  countOfLostAgents,
  countOfOpenRuns,
  pendingAgents,
} from '../../store/queries/overview.ts';
import { secretsByExpiry } from '../../store/queries/secrets.ts';
import { findOff, isOff, type Standing } from '../drift/standings.ts';
import { countUnread } from '../notifications/notifications.ts';
import { type Context, seconds } from '../shared/context.ts';
import { countStatus, takeCounts } from './fleet-counts.ts';

/** Returns a fleet summary. Ended operations do not count. */
export async function getOverview(context: Context, operatorId: string): Promise<Overview> {
  const { db, presence } = context;
  const now = context.now();
  const before_ms = now + secretsExpiringWithinDays * 86_400_000;
  const [{ agents, operations }, pending, lost, checked, off, neverApplied, runs, secrets, unread] = await Promise.all([
    takeCounts(context),
    db.all(pendingAgents, {}),
    db.get(countOfLostAgents, {}),
    db.all(agentsByLatestDrift, {}),
    findOff(context),
    db.all(agentsNeverApplied, {}),
    db.get(countOfOpenRuns, {}),
    db.all(secretsByExpiry, { before_ms, limit: maxSecretsExpiring }),
    countUnread(context, operatorId),
  ]);
  const waiting = pending.filter(({ node_id }) => presence.isConnected(node_id)).length;
  const standings = [...off.values()];
  const having = (reason: Overview['off'] extends Record<infer R, number> ? R : never) =>
    standings.filter(({ reasons }) => (reasons as readonly string[]).includes(reason)).length;
  const drift = {
    in_sync: countStatus(checked, 'in_sync') + countStatus(checked, 'drifted'),
    drifted: having('drifted'),
    accepted: standings.filter(({ drifted, reasons }) => drifted && !reasons.includes('drifted')).length,
    failed: countStatus(checked, 'failed'),
  };
  const known = drift.in_sync + drift.drifted + drift.accepted + drift.failed;
  return {
    as_of: seconds(now),
    agents: {
      ...agents,
      connected: Math.max(0, Math.min(agents.approved, presence.count - waiting)),
      lost: Number(lost?.count ?? 0),
    },
    // The queries do not share a snapshot, so the difference may be negative.
    drift: { ...drift, unchecked: Math.max(0, agents.approved - known) },
    desired_state: countSyncStates(agents.approved, off, neverApplied),
    off: {
      agents: standings.filter(isOff).length,
      drifted: drift.drifted,
      drift_failed: having('drift_failed'),
      apply_failed: having('apply_failed'),
      unapplied: having('unapplied'),
      pending_removals: having('pending_removals'),
    },
    runs_running: Number(runs?.count ?? 0),
    operations,
    secrets_expiring: secrets.flatMap(({ name, expires_at_ms }) =>
      expires_at_ms === null ? [] : [{ name, expires_at: new Date(expires_at_ms).toISOString() }],
    ),
    unread_notifications: unread,
  };
}

/**
 * Counts approved agents by their sync state. Outdated agents also count as in sync, as in releases that did not count
 * outdated agents.
 */
function countSyncStates(
  approved: number,
  off: ReadonlyMap<string, Standing>,
  neverApplied: readonly { readonly node_id: string }[],
): Overview['desired_state'] {
  const counts: Record<SyncState, number> = { in_sync: 0, outdated: 0, accepted: 0, out_of_sync: 0, never_applied: 0 };
  for (const { reasons, drifted, outdated } of off.values())
    counts[decideSyncState({ reasons, hasDrifted: drifted, isOutdated: outdated > 0, isApplied: true })] += 1;
  const { outdated, accepted, out_of_sync } = counts;
  const never_applied = neverApplied.filter(({ node_id }) => !off.has(node_id)).length;
  // The queries do not share a snapshot, so the difference may be negative or too small.
  const in_sync = Math.max(outdated, approved - accepted - out_of_sync - never_applied);
  return { in_sync, outdated, accepted, out_of_sync, never_applied };
}
