import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { BellOff, CheckCheck } from 'lucide-react';
import { markAllRead, notificationsQuery, reloadNewestNotifications } from '../../api/notifications.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { MoreActions } from '../../parts/dialog/more-actions.tsx';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty } from '../../parts/states.tsx';
import { PagedList } from '../../parts/table/paged-list.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { groupNotifications } from './notification-groups.ts';
import { NotificationGroupRow } from './notification-row.tsx';
import { uniqueById } from './unique-by-id.ts';

export function NotificationsPage() {
  const [shown, setShown] = useUrlState<'all' | 'unread'>('show', 'all');
  const onlyUnread = shown === 'unread';
  const query = useInfiniteQuery(notificationsQuery(onlyUnread));
  const { data } = query;
  const readAll = useMutation({ mutationFn: markAllRead, onError: notifyError });
  // Pages are offsets from the newest notification, so a new one shifts the last entry of a page to the next page.
  const notifications = data && uniqueById(data.pages.flatMap((page) => page.notifications));
  const groups = notifications && groupNotifications(notifications);
  const hasNewer = data !== undefined && data.pages.length > 1 && query.isStale;
  return (
    <Page
      title="Notifications"
      description={
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
          <Button aria-pressed={onlyUnread} onClick={() => setShown(onlyUnread ? 'all' : 'unread')}>
            {onlyUnread ? 'Show all' : 'Show unread'}
          </Button>
          <MoreActions
            actions={[
              {
                ...{ label: 'Mark all as read', icon: <CheckCheck aria-hidden="true" className="size-4" /> },
                disabled: (data?.pages[0]?.unread_count ?? 0) === 0,
                ...{ busy: readAll.isPending, onSelect: () => readAll.mutate() },
              },
            ]}
          />
        </>
      }
    >
      <PagedList
        label="Notifications"
        rowSize="row"
        query={query}
        items={groups}
        onShowNewer={hasNewer ? () => void reloadNewestNotifications(onlyUnread) : undefined}
        empty={
          <Empty
            title={onlyUnread ? 'No unread notifications' : 'No notifications yet'}
            icon={<BellOff />}
            action={
              onlyUnread ? (
                <Button onClick={() => setShown('all')}>Show all</Button>
              ) : (
                <Link to="/channels" className={buttonClasses()}>
                  Channels
                </Link>
              )
            }
          >
            {onlyUnread
              ? 'You have read every notification.'
              : 'Offline or pending agents, drift, failed applies, and halted runs appear here.'}
          </Empty>
        }
      >
        {(group) => <NotificationGroupRow key={group.id} group={group} />}
      </PagedList>
    </Page>
  );
}
