import type { Notification } from '@muster/protocol/http';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { BellOff, CheckCheck } from 'lucide-react';
import { findEvent } from '../../api/audit.ts';
import { markAllRead, markRead, notificationsQuery, reloadNewestNotifications } from '../../api/notifications.ts';
import { Badge, Dot, type Tone } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, Newer, SkeletonRows } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { pathOf } from '../audit/target-link.tsx';
import { uniqueById } from './unique-by-id.ts';

const tones: Record<Notification['severity'], Tone> = { info: 'info', warning: 'warn', critical: 'bad' };

/** Fallback pages by event category. */
const categoryPaths: Readonly<Record<string, string>> = {
  agent: '/agents',
  drift: '/reconcile',
  state: '/operations',
  run: '/runs',
  secret: '/secrets',
  channel: '/channels',
  operator: '/operators',
  audit: '/audit',
  disk: '/settings',
  system: '/settings',
};
const fallbackPathOf = ({ event_type }: Notification): string =>
  categoryPaths[event_type.split('.')[0] ?? ''] ?? '/audit';

export function NotificationsPage() {
  const [shown, setShown] = useUrlState<'all' | 'unread'>('show', 'all');
  const { data, error, isStale, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    notificationsQuery(shown === 'unread'),
  );
  const navigate = useNavigate();
  const openTarget = useMutation({
    mutationFn: (notification: Notification) =>
      findEvent(notification.event_id, notification.event_type, notification.timestamp_ms),
    onSuccess: (event, notification) =>
      void navigate({ to: (event && pathOf(event.target)) ?? fallbackPathOf(notification) }),
    onError: (_, notification) => void navigate({ to: fallbackPathOf(notification) }),
  });
  const readAll = useMutation({ mutationFn: markAllRead, onError: notifyError });
  const read = useMutation({ mutationFn: markRead, onError: notifyError });
  // Pages are offsets from the newest, so a new notification shifts others into the next page.
  const notifications = data && uniqueById(data.pages.flatMap((page) => page.notifications));
  const unread = data?.pages[0]?.unread_count ?? 0;

  return (
    <Page
      title="Notifications"
      subtitle={
        <>
          Events that need your attention. To receive them elsewhere, add{' '}
          <Link to="/channels" className="text-accent underline">
            channels
          </Link>
          .
        </>
      }
      actions={
        <>
          <Button aria-pressed={shown === 'unread'} onClick={() => setShown(shown === 'unread' ? 'all' : 'unread')}>
            {shown === 'unread' ? 'Show all' : 'Show unread'}
          </Button>
          <Button
            icon={<CheckCheck className="size-4" />}
            disabled={unread === 0}
            busy={readAll.isPending}
            onClick={() => readAll.mutate()}
          >
            Mark all as read
          </Button>
        </>
      }
    >
      <Panel flush>
        {data && data.pages.length > 1 && isStale && (
          <Newer onShow={() => void reloadNewestNotifications(shown === 'unread')} />
        )}
        {error && !data ? (
          <Failure error={error} retry={() => void refetch()} />
        ) : notifications === undefined ? (
          <SkeletonRows />
        ) : notifications.length === 0 ? (
          <Empty
            title={shown === 'unread' ? 'No unread notifications' : 'No notifications yet'}
            icon={<BellOff className="size-7" strokeWidth={1.4} />}
          >
            Lost agents, agents that await approval, drift, failed applies, and halted runs appear here.
          </Empty>
        ) : (
          <ul className="divide-y" aria-label="Notifications">
            {notifications.map((notification) => (
              <li
                key={notification.id}
                className={classNames(
                  'flex flex-wrap items-start gap-x-3 px-4 py-2.5 sm:flex-nowrap',
                  !notification.read && 'bg-accent-soft/40',
                )}
              >
                <span className="pt-1.5">
                  <Dot tone={tones[notification.severity]} />
                </span>
                <div className="min-w-0 flex-1 basis-[calc(100%-2rem)] sm:basis-0">
                  <p className={classNames('text-sm', !notification.read && 'font-medium')}>
                    <Text text={notification.summary} maxLength={300} />
                  </p>
                  <p className="flex flex-wrap items-center gap-x-2 text-muted text-xs">
                    <code className="font-mono">{notification.event_type}</code>
                    <Time at={notification.timestamp_ms / 1000} />
                    <span>{notification.severity}</span>
                    {notification.suppressed && <Badge>maintenance window, not sent</Badge>}
                  </p>
                </div>
                <div className="-ml-2 flex shrink-0 gap-1 max-sm:pl-5">
                  <Link
                    to={fallbackPathOf(notification) as '/audit'}
                    onClick={(event) => {
                      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                      event.preventDefault();
                      openTarget.mutate(notification);
                    }}
                    className={buttonClasses('quiet', true)}
                  >
                    Open
                  </Link>
                  {!notification.read && (
                    <Button small look="quiet" onClick={() => read.mutate(notification.id)}>
                      Mark as read
                    </Button>
                  )}
                </div>
              </li>
            ))}
          </ul>
        )}
        {hasNextPage && (
          <div className="border-t p-3 text-center">
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Show older
            </Button>
          </div>
        )}
      </Panel>
    </Page>
  );
}
