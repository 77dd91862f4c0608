import type { Notification } from '@muster/protocol/http';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { BellOff, CheckCheck } from 'lucide-react';
import { markAllRead, markRead, notificationsQuery } from '../../api/notifications.ts';
import { Badge, Dot, type Tone } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { toldProblem } from '../../parts/toast.tsx';
import { useUrlState } from '../../parts/url-state.ts';

const tones: Record<Notification['severity'], Tone> = { info: 'info', warning: 'warn', critical: 'bad' };

/** Where one looks into what an event tells of. */
const placeOf: Readonly<Record<string, string>> = {
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

/** What happened that an operator should know. Read is what this operator has read. */
export function NotificationsPage() {
  const [shown, setShown] = useUrlState<'all' | 'unread'>('show', 'all');
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    notificationsQuery(shown === 'unread'),
  );
  const readAll = useMutation({ mutationFn: markAllRead, onError: toldProblem });
  const read = useMutation({ mutationFn: markRead, onError: toldProblem });
  const notifications = data?.pages.flatMap((page) => page.notifications);
  const unread = data?.pages[0]?.unread_count ?? 0;

  return (
    <Page
      title="Notifications"
      subtitle={
        <>
          What happened that you should know.{' '}
          <Link to="/channels" className="text-accent underline">
            Channels
          </Link>{' '}
          carry it to where people are.
        </>
      }
      actions={
        <>
          <Button aria-pressed={shown === 'unread'} onClick={() => setShown(shown === 'unread' ? 'all' : 'unread')}>
            {shown === 'unread' ? 'Show all' : 'Only unread'}
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
        {error ? (
          <Failure error={error} retry={() => void refetch()} />
        ) : notifications === undefined ? (
          <SkeletonRows />
        ) : notifications.length === 0 ? (
          <Empty
            title={shown === 'unread' ? 'You have read everything' : 'Nothing has happened yet'}
            icon={<BellOff className="size-7" strokeWidth={1.4} />}
          >
            Agents that are lost or wait for approval, drift, failed applies and halted runs show here.
          </Empty>
        ) : (
          <ul className="divide-y" aria-label="Notifications">
            {notifications.map((notification) => (
              <li
                key={notification.id}
                className={classNames('flex items-start gap-3 px-4 py-2.5', !notification.read && 'bg-accent-soft/40')}
              >
                <span className="pt-1.5">
                  <Dot tone={tones[notification.severity]} />
                </span>
                <div className="min-w-0 flex-1">
                  <p className={classNames('text-sm', !notification.read && 'font-medium')}>
                    <Text text={notification.summary} most={300} />
                  </p>
                  <p className="flex flex-wrap items-center gap-x-2 text-muted text-xs">
                    <code className="font-mono">{notification.event_type}</code>
                    <Time at={notification.timestamp_ms / 1000} />
                    <span>{notification.severity}</span>
                    {notification.suppressed && <Badge>in a maintenance window, not sent</Badge>}
                  </p>
                </div>
                <div className="flex shrink-0 gap-1">
                  <Link
                    to={(placeOf[notification.event_type.split('.')[0] ?? ''] ?? '/audit') as '/audit'}
                    className={buttonClasses('quiet', true)}
                  >
                    Look
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
              Show older ones
            </Button>
          </div>
        )}
      </Panel>
    </Page>
  );
}
