import { eventSentence } from '@muster/protocol/event-sentence';
import type { Notification } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Check, ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { findEvent } from '../../api/audit.ts';
import { markRead } from '../../api/notifications.ts';
import { Dot } from '../../parts/badge.tsx';
import { IconButton } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { cutText, visibleText } from '../../parts/text.tsx';
import { Time, withLocalTimes } from '../../parts/time.tsx';
import { pathOf } from '../audit/target-link.tsx';
import { eventsLabel } from './event-labels.ts';
import { eventTone } from './event-tones.ts';
import type { NotificationGroup } from './notification-groups.ts';

/** Pages by event category, for events without a page of their own. */
const categoryPaths: Readonly<Record<string, string>> = {
  agent: '/agents',
  drift: '/out-of-sync',
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

const rowClasses = (isUnread: boolean, isNested = false) =>
  classNames(
    'relative flex items-start gap-x-3 py-2.5 pr-4 max-sm:pr-2',
    isNested ? 'pl-10' : 'pl-4',
    isUnread ? 'shadow-[inset_3px_0_0_var(--text)]' : 'text-muted',
  );

/** The severity as a dot, with its name for screen readers. */
const Severity = ({ event_type, severity }: Pick<Notification, 'event_type' | 'severity'>) => (
  <span className="flex h-5 shrink-0 items-center">
    <Dot tone={eventTone({ event_type, severity })} />
    {severity !== 'info' && <span className="sr-only">{severity}: </span>}
  </span>
);

/** A button that marks a notification as read. Its place stays empty afterwards, so that the times are aligned. */
const MarkRead = ({
  label,
  isUnread,
  onClick,
}: {
  readonly label: string;
  readonly isUnread: boolean;
  readonly onClick: () => void;
}) => (
  <span className="-my-1 w-7 shrink-0 self-center max-sm:w-9">
    {isUnread && (
      <IconButton
        small
        label={label}
        className="relative z-[1]"
        onClick={onClick}
        icon={<Check aria-hidden="true" className="size-4" />}
      />
    )}
  </span>
);

/** The text of a notification, and its time: at the end of the line, or on a phone below it. */
const textClasses = 'min-w-0 flex-1 sm:flex sm:items-baseline sm:gap-3';
const timeClasses = 'flex shrink-0 flex-wrap items-center gap-x-2 text-muted text-xs sm:justify-end';

const NotSent = () => <span className="rounded border bg-surface px-1.5">maintenance window, not sent</span>;

/** Shows a notification, or several of one type that can be expanded. */
export function NotificationGroupRow({ group }: { readonly group: NotificationGroup }) {
  const [open, setOpen] = useState(false);
  const [newest, ...others] = group.notifications;
  const readAll = useMutation({
    mutationFn: () => Promise.all(group.notifications.map(({ id }) => markRead(id))),
    onError: notifyError,
  });
  if (others.length === 0) return <NotificationRow notification={newest} />;
  const label = eventsLabel(newest.event_type, group.notifications.length);
  return (
    <li>
      <div className={classNames(rowClasses(!newest.read), 'hover:bg-hover')}>
        <Severity {...newest} />
        <div className={textClasses}>
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className={classNames(
              'flex flex-1 items-center gap-1 text-left text-sm after:absolute after:inset-0',
              !newest.read && 'font-medium',
            )}
          >
            {label}
            <ChevronRight
              aria-hidden="true"
              className={classNames('size-4 text-muted transition-transform', open && 'rotate-90')}
            />
          </button>
          <p className={timeClasses}>
            {newest.suppressed && <NotSent />}
            <span>
              Latest <Time at={newest.timestamp_ms / 1000} />
            </span>
          </p>
        </div>
        <MarkRead label={`Mark ${label} as read`} isUnread={!newest.read} onClick={() => readAll.mutate()} />
      </div>
      {open && (
        <ul aria-label={label} className="divide-y border-t">
          {group.notifications.map((notification) => (
            <NotificationRow key={notification.id} notification={notification} isNested />
          ))}
        </ul>
      )}
    </li>
  );
}

/** A notification. A click opens its target, and marks it as read. */
function NotificationRow({
  notification,
  isNested = false,
}: {
  readonly notification: Notification;
  /** Whether the row belongs to the group above it. */
  readonly isNested?: boolean;
}) {
  const navigate = useNavigate();
  const fallback = fallbackPathOf(notification);
  const read = useMutation({ mutationFn: () => markRead(notification.id), onError: notifyError });
  const openTarget = useMutation({
    mutationFn: () => findEvent(notification.event_id, notification.event_type, notification.timestamp_ms),
    onSuccess: (event) => void navigate({ to: (event && pathOf(event.target)) ?? fallback }),
    onError: () => void navigate({ to: fallback }),
  });
  return (
    <li className={classNames(rowClasses(!notification.read, isNested), 'hover:bg-hover')}>
      <Severity {...notification} />
      <div className={textClasses}>
        <p className={classNames('min-w-0 flex-1 text-sm', !notification.read && 'font-medium')}>
          <Link
            to={fallback as '/audit'}
            className="after:absolute after:inset-0"
            onClick={(event) => {
              if (!notification.read) read.mutate();
              if (event.metaKey || event.ctrlKey || event.shiftKey) return;
              event.preventDefault();
              openTarget.mutate();
            }}
          >
            {visibleText(cutText(withLocalTimes(eventSentence(notification)), 300))}
          </Link>
        </p>
        <p className={timeClasses}>
          {notification.suppressed && <NotSent />}
          <Time at={notification.timestamp_ms / 1000} />
        </p>
      </div>
      <MarkRead label="Mark as read" isUnread={!notification.read} onClick={() => read.mutate()} />
    </li>
  );
}
