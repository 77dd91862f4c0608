import type { Notification } from '@muster/protocol/http';

/** Adjacent notifications of one type, newest first. */
export interface NotificationGroup {
  /** Id of the newest notification. */
  readonly id: string;
  readonly notifications: readonly [Notification, ...Notification[]];
}

/** Maximum interval in milliseconds between adjacent notifications in a group. */
const maxGapMs = 3_600_000;

/**
 * Groups adjacent notifications of one type that are all read or all unread.
 * @param notifications newest first
 */
export function groupNotifications(notifications: readonly Notification[]): NotificationGroup[] {
  const groups: { id: string; notifications: [Notification, ...Notification[]] }[] = [];
  for (const notification of notifications) {
    const group = groups.at(-1)?.notifications;
    const newer = group?.at(-1);
    const belongs =
      newer !== undefined &&
      newer.event_type === notification.event_type &&
      newer.read === notification.read &&
      newer.suppressed === notification.suppressed &&
      newer.timestamp_ms - notification.timestamp_ms <= maxGapMs;
    if (belongs) group?.push(notification);
    else groups.push({ id: notification.id, notifications: [notification] });
  }
  return groups;
}
