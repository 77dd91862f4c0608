import { MusterError } from '@muster/protocol';
import { type AuditEvent, maxUnreadCounted, type Notification, notifyingEvents } from '@muster/protocol/http';
import { fromJson, toJson } from '../../store/json-text.ts';
import { jsonRows } from '../../store/params.ts';
import { agentsForSelectors } from '../../store/queries/agents/agents.ts';
import { channelIds } from '../../store/queries/channels.ts';
import { insertDeliveries } from '../../store/queries/deliveries.ts';
import {
  deleteNotifications,
  deleteReadsOf,
  deleteReadsUpTo,
  deleteReadUpTo,
  insertNotifications,
  insertRead,
  newestNotification,
  notificationBefore,
  notificationBeyond,
  notificationById,
  notifications,
  notificationsSince,
  prunableNotifications,
  raiseReadUpTo,
  readUpTo,
  unreadCount,
} from '../../store/queries/notifications.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { EventConsumer, PlacedEvent } from '../audit/placed-event.ts';
import { covers, type OpenWindows, openWindows } from '../modules/windows.ts';
import { inSession } from '../shared/acting.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import type { Fence } from '../shared/leases.ts';

/** Notifications, and the read marks of each operator. */

const notifying: ReadonlySet<string> = new Set(notifyingEvents);
/**
 * Event types that a maintenance window mutes, because work on a machine may cause them. Security events, such as a
 * cloned key, are never muted, because an attacker could wait for a window.
 */
const suppressible: ReadonlySet<string> = new Set(['agent.lost', 'agent.returned', 'drift.detected']);
/**
 * Event types that agents and unknown machines can cause without limit. Each type has one hourly limit for known agents
 * and one for unknown agents. The last notification within a limit states that further notifications appear only in the
 * audit log.
 */
const limited: ReadonlySet<string> = new Set(['agent.key_rotated', 'agent.refused']);
const limitedAnHour = 10;
const hourMs = 3_600_000;
/** Limits on the parts of an event that are sent to channels. The audit log contains the full values. */
const maxSummaryLength = 1_000;
const maxMetadataLength = 16_384;

/**
 * Returns a consumer that creates notifications from events, and queues channel deliveries in the outbox. Both are
 * written exactly once, in the transaction that adds the events to the chain.
 */
export function notificationsOf(context: Context): EventConsumer {
  return async (events) => {
    const statements: Statement[] = [];
    for (const event of events) if (event.event_type.startsWith('operator.')) statements.push(...startAsRead(event));
    const allowed = await withinLimits(
      context,
      events.filter(({ event_type }) => notifying.has(event_type)),
    );
    if (allowed.length === 0) return statements;
    const covered = await mutedByWindow(context, allowed);
    statements.push(
      statement(insertNotifications, {
        rows: jsonRows(allowed.map((event) => toRow(context, event, covered.has(event)))),
      }),
    );
    const channels = await context.db.all(channelIds, {});
    const deliveries = allowed
      .filter((event) => !covered.has(event))
      .flatMap((event) =>
        channels
          // A channel does not report its own failure.
          .filter(({ channel_id }) => channel_id !== event.target_id)
          .map(({ channel_id }) => ({ delivery_id: context.newId(), channel_id, place: event.place })),
      );
    if (deliveries.length > 0)
      statements.push(statement(insertDeliveries, { rows: jsonRows(deliveries), created_at_ms: context.now() }));
    return statements;
  };
}

/**
 * Returns the statements for an event about an operator: they mark all notifications as read for a new operator, and
 * delete the read marks of a removed operator.
 */
function startAsRead({ event_type, target_id, place }: PlacedEvent): Statement[] {
  const operator = { operator_id: target_id };
  if (event_type === 'operator.added') return [statement(raiseReadUpTo, { ...operator, place })];
  if (event_type !== 'operator.removed') return [];
  return [statement(deleteReadsOf, operator), statement(deleteReadUpTo, operator)];
}

/** Drops events beyond {@link limitedAnHour}. */
async function withinLimits(context: Context, events: readonly PlacedEvent[]): Promise<readonly PlacedEvent[]> {
  const times = events.filter(({ event_type }) => limited.has(event_type)).map(({ timestamp_ms }) => timestamp_ms);
  if (times.length === 0) return events;
  const shareOf = (type: string, nodeId: string | null) => `${type} ${nodeId === null ? 'stranger' : 'agent'}`;
  const happened_after = Math.min(...times) - hourMs;
  const allowed = (await context.db.all(notificationsSince, { types: [...limited], happened_after })).map(
    ({ event_type, node_id, timestamp_ms }) => ({ share: shareOf(event_type, node_id), at: timestamp_ms }),
  );
  return events.flatMap((event) => {
    if (!limited.has(event.event_type)) return [event];
    const share = shareOf(event.event_type, nodeIdOf(event));
    const at = event.timestamp_ms;
    const count = allowed.filter((one) => one.share === share && Math.abs(at - one.at) < hourMs).length;
    if (count >= limitedAnHour) return [];
    allowed.push({ share, at });
    if (count < limitedAnHour - 1) return [event];
    const summary = `${event.summary.slice(0, maxSummaryLength - 200)}; further ones within the hour are only in the audit log: muster audit list --type ${event.event_type}`;
    return [{ ...event, summary }];
  });
}

const nodeIdOf = ({ target_type, target_id }: PlacedEvent) => (target_type === 'agent' ? target_id : null);

/** Returns the events that a maintenance window mutes. An event is muted by windows that were open at its time. */
async function mutedByWindow(context: Context, events: readonly PlacedEvent[]): Promise<ReadonlySet<PlacedEvent>> {
  const covered = new Set<PlacedEvent>();
  const candidates = events.filter(
    ({ event_type, target_type }) => suppressible.has(event_type) && target_type === 'agent',
  );
  if (candidates.length === 0) return covered;
  const open = new Map<number, OpenWindows>();
  for (const at of new Set(candidates.map(({ timestamp_ms }) => seconds(timestamp_ms))))
    open.set(at, await openWindows(context, at));
  const within = candidates.filter(({ timestamp_ms }) => open.get(seconds(timestamp_ms))?.length);
  if (within.length === 0) return covered;
  const node_ids = [...new Set(within.map(({ target_id }) => target_id))];
  const agents = new Map(
    (await context.db.all(agentsForSelectors, { node_ids })).map((row) => [
      row.node_id,
      { tags: fromJson(row.tags), attributes: fromJson(row.attributes) },
    ]),
  );
  for (const event of within) {
    // A removed agent has no tags or attributes, so only windows for all agents match it.
    const agent = agents.get(event.target_id) ?? { tags: {}, attributes: {} };
    if (covers(open.get(seconds(event.timestamp_ms)) ?? [], agent)) covered.add(event);
  }
  return covered;
}

const toRow = (context: Context, event: PlacedEvent, suppressed: boolean) => ({
  notification_id: context.newId(),
  place: event.place,
  event_id: event.id,
  event_type: event.event_type,
  severity: event.severity,
  summary: event.summary.slice(0, maxSummaryLength),
  timestamp_ms: event.timestamp_ms,
  node_id: nodeIdOf(event),
  suppressed,
  event: toJson<AuditEvent>({
    id: event.id,
    event_type: event.event_type,
    severity: event.severity,
    timestamp: new Date(event.timestamp_ms).toISOString(),
    actor: { type: event.actor_type, id: event.actor_id, name: event.actor_name },
    target: { type: event.target_type, id: event.target_id, name: event.target_name },
    summary: event.summary.slice(0, maxSummaryLength),
    metadata: event.metadata.length > maxMetadataLength ? {} : (fromJson(event.metadata) as AuditEvent['metadata']),
  }),
});

/** Lists notifications, newest first, with the read marks of this operator. */
export async function listNotifications(
  { db }: Context,
  operatorId: string,
  request: { unread?: boolean; limit?: number | undefined; offset?: number | undefined },
): Promise<{ notifications: Notification[]; unread_count: number }> {
  const operator = { operator_id: operatorId };
  const read_up_to = (await db.get(readUpTo, operator))?.place ?? 0;
  const [rows, count] = await Promise.all([
    db.all(notifications({ unread: request.unread === true }), {
      ...operator,
      read_up_to,
      limit: request.limit ?? 50,
      offset: request.offset ?? 0,
    }),
    db.get(unreadCount, { ...operator, read_up_to, limit: maxUnreadCounted }),
  ]);
  return {
    notifications: rows.map((row) => ({
      id: row.notification_id,
      event_id: row.event_id,
      event_type: row.event_type,
      severity: row.severity,
      summary: row.summary,
      timestamp_ms: row.timestamp_ms,
      read: row.place <= read_up_to || row.read_place !== null,
      suppressed: row.suppressed === 1,
    })),
    unread_count: count?.count ?? 0,
  };
}

/** Returns the number of unread notifications, counted up to {@link maxUnreadCounted}. */
export async function countUnread({ db }: Context, operatorId: string): Promise<number> {
  const operator = { operator_id: operatorId };
  const read_up_to = (await db.get(readUpTo, operator))?.place ?? 0;
  return (await db.get(unreadCount, { ...operator, read_up_to, limit: maxUnreadCounted }))?.count ?? 0;
}

/**
 * Marks a notification as read for this operator.
 * @throws MusterError notification_not_found
 */
export async function readNotification(context: Context, actor: Actor, id: string): Promise<void> {
  const { db, bus } = context;
  const found = await db.get(notificationById, { notification_id: id });
  if (!found)
    throw new MusterError('notification_not_found', `there is no notification ${JSON.stringify(id.slice(0, 64))}`);
  await db.write({
    name: 'notifications/read',
    statements: [
      ...inSession(context, actor),
      statement(notificationById, { notification_id: id }, { expect: 'row', else: 'notification_not_found' }),
      statement(insertRead, { operator_id: actor.id, place: found.place }),
    ],
  });
  bus.publish({ type: 'notifications_read', operator_id: actor.id });
}

/** Marks all current notifications as read for this operator. */
export async function readAllNotifications(context: Context, actor: Actor): Promise<void> {
  const { db, bus } = context;
  const newest = await db.get(newestNotification, {});
  if (!newest) return;
  const upTo = { operator_id: actor.id, place: newest.place };
  await db.write({
    name: 'notifications/read all',
    statements: [...inSession(context, actor), statement(raiseReadUpTo, upTo), statement(deleteReadsUpTo, upTo)],
  });
  bus.publish({ type: 'notifications_read', operator_id: actor.id });
}

/** Maximum number of stored notifications. Bounds the cost of lists and counts. */
const maxStored = 10_000;
const pruneAtOnce = 500;

/** Deletes old notifications that have no outstanding delivery. The audit log has its own retention period. */
export async function pruneNotifications(context: Context, fence: Fence, retentionDays: number): Promise<void> {
  const { db } = context;
  const happened_before = context.now() - retentionDays * 86_400_000;
  const aged = retentionDays === 0 ? undefined : await db.get(notificationBefore, { happened_before });
  const beyond = await db.get(notificationBeyond, { newest: maxStored });
  const up_to = Math.max(aged?.place ?? 0, beyond?.place ?? 0);
  if (up_to === 0) return;
  for (;;) {
    const old = await db.all(prunableNotifications, { up_to, limit: pruneAtOnce });
    if (old.length === 0) return;
    const places = old.map(({ place }) => place);
    await db.write({ name: 'notifications/prune', statements: [...fence, statement(deleteNotifications, { places })] });
    if (old.length < pruneAtOnce) return;
  }
}
