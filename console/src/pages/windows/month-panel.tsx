import type { Window } from '@muster/protocol/http';
import { ArrowLeft, ArrowRight } from 'lucide-react';
import { useMemo } from 'react';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Button, IconButton } from '../../parts/button.tsx';
import { Panel } from '../../parts/panel.tsx';
import { SkeletonRows } from '../../parts/states.tsx';
import { useIsPhone } from '../../parts/table/use-drawn-columns.ts';
import { Agenda } from './agenda.tsx';
import { Calendar } from './calendar.tsx';
import { shownWeeks } from './month.ts';
import { useShownMonth } from './use-shown-month.ts';
import type { WindowAction } from './window-action-dialog.tsx';

const noWindows: readonly Window[] = [];
const period = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric' });

/**
 * The maintenance windows of a month, or from today on: a calendar, or a list of days on a phone. Admins select a window
 * to change it, or a day to create a window.
 */
export function MonthPanel({
  windows,
  now,
  onAction,
}: {
  /** Undefined while loading. */
  readonly windows: readonly Window[] | undefined;
  readonly now: number;
  readonly onAction: (action: WindowAction) => void;
}) {
  const isAdmin = useIsAdmin();
  const { year, month, move, showToday } = useShownMonth(now);
  const today = new Date(now).setHours(0, 0, 0, 0);
  const weeks = useMemo(() => shownWeeks(year, month, today), [year, month, today]);
  const days = weeks.flat().filter(({ isShown }) => isShown);
  const [first, last] = [days[0], days.at(-1)];
  // The days of a calendar are too narrow for text on a phone.
  const isPhone = useIsPhone();
  const View = isPhone ? Agenda : Calendar;
  return (
    <Panel
      flush
      title={first && last && period.formatRange(first.from, last.from)}
      actions={
        <>
          <IconButton small label="Previous month" icon={<ArrowLeft className="size-4" />} onClick={() => move(-1)} />
          <Button small onClick={showToday}>
            Today
          </Button>
          <IconButton small label="Next month" icon={<ArrowRight className="size-4" />} onClick={() => move(1)} />
        </>
      }
    >
      {isPhone && windows === undefined ? (
        <SkeletonRows rows={3} size="entry" label={null} />
      ) : (
        <View
          {...{ weeks, now }}
          windows={windows ?? noWindows}
          {...(isAdmin && {
            onWindow: (window: Window) => onAction({ kind: 'edit', window, from: null }),
            onDay: (from: Date) => onAction({ kind: 'edit', window: null, from }),
          })}
        />
      )}
    </Panel>
  );
}
