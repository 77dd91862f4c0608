import type { Notification } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { findEvent } from '../../api/audit.ts';
import { markRead } from '../../api/notifications.ts';
import { Badge, Dot, type Tone } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { pathOf } from '../audit/target-link.tsx';

const tones: Record<Notification['severity'], Tone> = { info: 'info', warning: 'warn', critical: 'bad' };

/** Pages by event category, for events without a page of their own. */
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

export function NotificationRow({ notification }: { readonly notification: Notification }) {
  const navigate = useNavigate();
  const fallback = fallbackPathOf(notification);
  const openTarget = useMutation({
    mutationFn: () => findEvent(notification.event_id, notification.event_type, notification.timestamp_ms),
    onSuccess: (event) => void navigate({ to: (event && pathOf(event.target)) ?? fallback }),
    onError: () => void navigate({ to: fallback }),
  });
  const read = useMutation({ mutationFn: () => markRead(notification.id), onError: notifyError });
  return (
    <li
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
          to={fallback as '/audit'}
          onClick={(event) => {
            if (event.metaKey || event.ctrlKey || event.shiftKey) return;
            event.preventDefault();
            openTarget.mutate();
          }}
          className={buttonClasses('quiet', true)}
        >
          Open
        </Link>
        {!notification.read && (
          <Button small look="quiet" onClick={() => read.mutate()}>
            Mark as read
          </Button>
        )}
      </div>
    </li>
  );
}
