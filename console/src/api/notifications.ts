import { listNotifications, readAllNotifications, readNotification } from '@muster/protocol/http';
import { infiniteQueryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { newestFirst } from './live/query-invalidation.ts';
import { queryClient, routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

/** The number of unread notifications for this operator, and the newest notifications. */
export const unreadQuery = routeQuery([...keys.notifications, 'unread'], listNotifications, {
  query: { unread: 'true', limit: '20' },
});

const pageSize = 100;

export const notificationsQuery = (unread: boolean) =>
  infiniteQueryOptions({
    queryKey: [...keys.notifications, unread ? 'only-unread' : 'all'],
    queryFn: ({ pageParam, signal }) =>
      call(listNotifications, {
        query: { limit: String(pageSize), offset: String(pageParam), ...(unread ? { unread: 'true' as const } : {}) },
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: (last, _, offset) =>
      last.notifications.length < pageSize ? undefined : offset + last.notifications.length,
    meta: newestFirst,
  });

/** Discards all loaded pages and fetches the first one again. */
export const reloadNewestNotifications = (unread: boolean) =>
  queryClient.resetQueries({ queryKey: notificationsQuery(unread).queryKey });

const invalidate = () => queryClient.invalidateQueries({ queryKey: keys.notifications });

export async function markRead(id: string): Promise<void> {
  await call(readNotification, { params: { id } });
  await invalidate();
}

export async function markAllRead(): Promise<void> {
  await call(readAllNotifications, {});
  await invalidate();
}
