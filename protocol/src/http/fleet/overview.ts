import { z } from 'zod';
import { unixSeconds } from '../definition/fields.ts';
import { route } from '../definition/route.ts';
import { maxUnreadCounted } from '../notifications.ts';

/** Secrets that expire within this number of days appear in the overview. */
export const secretsExpiringWithinDays = 30;
export const maxSecretsExpiring = 20;

const count = z.number().int().nonnegative();

export const overviewSchema = z
  .strictObject({
    as_of: unixSeconds,
    agents: z.strictObject({
      pending: count,
      rejected: count,
      approved: count,
      connected: count.describe('number of approved agents that are connected'),
      lost: count.describe('number of approved agents that have not been seen for too long'),
    }),
    drift: z
      .strictObject({
        in_sync: count,
        drifted: count,
        accepted: count.describe('agents whose drift has all been accepted'),
        failed: count.describe('agents whose newest check failed'),
        unchecked: count.describe('agents to which nothing was applied yet, or that were not checked yet'),
      })
      .describe('number of approved agents by drift status; each agent is counted once'),
    desired_state: z
      .strictObject({
        in_sync: count.describe(
          'agents whose last apply succeeded, and that have had no failed check and, unless outdated, no drift since',
        ),
        outdated: count
          .optional()
          .describe(
            'of the agents in sync, those on which an applied module has a newer revision, including agents with accepted drift',
          ),
        accepted: count.describe('agents whose only difference is accepted drift, and that are not outdated'),
        out_of_sync: count.describe('number of agents that `GET /reconcile` lists'),
        never_applied: count.describe('agents without a successful apply'),
      })
      .describe(
        'number of approved agents in comparison with their last successful apply; each is counted once, except in `outdated`',
      ),
    off: z
      .strictObject({
        agents: count.describe('number of agents that `GET /reconcile` lists'),
        drifted: count,
        drift_failed: count,
        apply_failed: count,
        unapplied: count,
        pending_removals: count,
      })
      .describe(
        'number of approved agents by the reason why they are not in their desired state; an agent may have several reasons',
      ),
    runs_running: count,
    operations: z.strictObject({ queued: count, running: count }),
    secrets_expiring: z
      .array(z.strictObject({ name: z.string(), expires_at: z.string().describe('RFC 3339') }))
      .describe(
        `the first ${maxSecretsExpiring} secrets that expire within ${secretsExpiringWithinDays} days or have expired, earliest first`,
      ),
    unread_notifications: count.describe(
      `number of unread notifications of the requesting operator, at most ${maxUnreadCounted}`,
    ),
  })
  .meta({ id: 'Overview' });
export type Overview = z.infer<typeof overviewSchema>;

export const getOverview = route({
  id: 'getOverview',
  method: 'GET',
  path: '/overview',
  tag: 'Fleet',
  summary: 'Show the fleet at a glance',
  access: 'operator',
  answers: { 200: overviewSchema },
  errors: [],
  example: {
    answer: {
      as_of: 1795000300,
      agents: { pending: 2, rejected: 1, approved: 412, connected: 409, lost: 3 },
      drift: { in_sync: 396, drifted: 5, accepted: 2, failed: 1, unchecked: 8 },
      desired_state: { in_sync: 401, outdated: 3, accepted: 2, out_of_sync: 7, never_applied: 2 },
      off: { agents: 7, drifted: 5, drift_failed: 1, apply_failed: 2, unapplied: 2, pending_removals: 0 },
      runs_running: 1,
      operations: { queued: 3, running: 12 },
      secrets_expiring: [{ name: 'tls-key', expires_at: '2026-12-01T00:00:00.000Z' }],
      unread_notifications: 4,
    },
  },
});
