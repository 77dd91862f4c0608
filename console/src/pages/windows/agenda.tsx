import type { Window } from '@muster/protocol/http';
import { CalendarClock } from 'lucide-react';
import { useMemo } from 'react';
import { classNames } from '../../parts/class-names.ts';
import { Empty } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';
import { type MonthView, stageClasses } from './calendar.tsx';
import { agendaOf, rangeText, stageOf } from './month.ts';

const dayTitle = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' });

/** The maintenance windows of a month as a list of days, for phones. */
export function Agenda({ weeks, now, windows, onWindow }: MonthView) {
  const days = useMemo(() => agendaOf(weeks, windows), [weeks, windows]);
  if (days.length === 0)
    return (
      <Empty title="No windows in this period" icon={<CalendarClock />}>
        {onWindow !== undefined && 'Create one with the button New window.'}
      </Empty>
    );
  return (
    <ol className="divide-y" aria-label="Agenda">
      {days.map((entry) => (
        <AgendaDay key={entry.day.from.getTime()} {...entry} {...{ now, onWindow }} />
      ))}
    </ol>
  );
}

function AgendaDay({
  day,
  now,
  windows,
  onWindow,
}: ReturnType<typeof agendaOf<Window>>[number] & {
  readonly now: number;
  readonly onWindow: MonthView['onWindow'] | undefined;
}) {
  const isToday = now >= day.from.getTime() && now < day.until.getTime();
  return (
    <li className="px-4 py-2" aria-current={isToday ? 'date' : undefined}>
      <h3 className={classNames('py-1 text-xs', isToday ? 'font-semibold text-accent' : 'text-muted')}>
        {dayTitle.format(day.from)}
        {isToday && ' (today)'}
      </h3>
      <ul className="space-y-1">
        {windows.map((window) => (
          <li key={window.id}>
            <AgendaEntry {...{ window, now, onWindow }} />
          </li>
        ))}
      </ul>
    </li>
  );
}

/** A window, as a button if it can be changed. */
function AgendaEntry({
  window,
  now,
  onWindow,
}: {
  readonly window: Window;
  readonly now: number;
  readonly onWindow: MonthView['onWindow'] | undefined;
}) {
  const shared = {
    className: classNames(
      'flex min-h-11 w-full flex-col justify-center rounded-md px-3 py-1.5 text-left text-sm',
      stageClasses[stageOf(window, now)],
    ),
    children: (
      <>
        <span className="font-medium">
          <Text text={window.reason} />
        </span>
        <span className="text-xs">{rangeText(window, now)}</span>
      </>
    ),
  };
  return onWindow === undefined ? (
    <div {...shared} />
  ) : (
    <button type="button" onClick={() => onWindow(window)} {...shared} />
  );
}
