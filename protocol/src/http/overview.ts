import { z } from 'zod';
import { unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { mostUnreadCounted } from './notifications.ts';

/** The overview lists secrets that expire within this many days, or have expired. */
export const secretsExpiringWithinDays = 30;
export const mostSecretsExpiring = 20;

const count = z.number().int().nonnegative();

export const overviewSchema = z
  .strictObject({
    as_of: unixSeconds,
    agents: z.strictObject({
      pending: count,
      rejected: count,
      approved: count,
      connected: count.describe('approved and connected now'),
      lost: count.describe('approved and not seen for longer than allowed'),
    }),
    drift: z
      .strictObject({
        in_sync: count,
        drifted: count,
        accepted: count.describe('all drift was accepted'),
        failed: count.describe('the newest check failed'),
        unchecked: count.describe('nothing was applied or checked yet'),
      })
      .describe('each approved agent once'),
    off: z
      .strictObject({
        agents: count.describe('how many `GET /reconcile` lists'),
        drifted: count,
        drift_failed: count,
        apply_failed: count,
        unapplied: count,
        pending_removals: count,
      })
      .describe('approved agents by the reason why they are off; an agent may count several times'),
    runs_running: count,
    operations: z.strictObject({ queued: count, running: count }),
    secrets_expiring: z
      .array(z.strictObject({ name: z.string(), expires_at: z.string().describe('RFC 3339') }))
      .describe(
        `within ${secretsExpiringWithinDays} days or past, the first ${mostSecretsExpiring}, the earliest first`,
      ),
    unread_notifications: count.describe(`of the requesting operator; counted up to ${mostUnreadCounted}`),
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
      off: { agents: 7, drifted: 5, drift_failed: 1, apply_failed: 2, unapplied: 2, pending_removals: 0 },
      runs_running: 1,
      operations: { queued: 3, running: 12 },
      secrets_expiring: [{ name: 'tls-key', expires_at: '2026-12-01T00:00:00.000Z' }],
      unread_notifications: 4,
    },
  },
});
