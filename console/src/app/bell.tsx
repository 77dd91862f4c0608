import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Bell as BellIcon } from 'lucide-react';
import { unreadQuery } from '../api/notifications.ts';
import { buttonClasses } from '../parts/button.tsx';

/** Links to the notifications page and shows the number of unread notifications. */
export function Bell() {
  const { data } = useQuery(unreadQuery);
  const count = data?.unread_count ?? 0;
  const shown = count > 99 ? '99+' : String(count);
  return (
    <Link
      to="/notifications"
      aria-label={count === 0 ? 'Notifications' : `Notifications, ${shown} unread`}
      title="Notifications"
      className={`${buttonClasses('quiet', false, true)} relative`}
    >
      <BellIcon aria-hidden="true" className="size-4.5" />
      {count > 0 && (
        <span
          aria-hidden="true"
          className="tabular absolute -top-1 left-[55%] max-sm:top-0.5 flex h-4 min-w-4 items-center justify-center rounded-full bg-text px-1 font-semibold text-2xs text-surface leading-none ring-2 ring-surface"
        >
          {shown}
        </span>
      )}
    </Link>
  );
}
