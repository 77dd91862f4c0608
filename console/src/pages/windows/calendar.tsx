import type { Window } from '@muster/protocol/http';
import { classNames } from '../../parts/class-names.ts';
import { Line } from '../../parts/text.tsx';
import { absoluteTime } from '../../parts/time.tsx';
import { type Day, onDay, stageOf } from './month.ts';

/** Maximum number of windows to show per day. The list shows all. */
const maxPerDay = 3;

export const stageClasses = {
  open: 'bg-info-soft text-info',
  planned: 'bg-hover text-text',
  over: 'bg-raised text-muted',
} as const;

const weekdays = Array.from({ length: 7 }, (_, day) =>
  new Intl.DateTimeFormat(undefined, { weekday: 'short' }).format(new Date(2024, 0, 1 + day)),
);
/** Contains the text of `firstOfMonth`, because the accessible name of a button must contain its text. */
const fullDate = new Intl.DateTimeFormat(undefined, {
  ...{ weekday: 'long', month: 'short', day: 'numeric', year: 'numeric' },
});

const firstOfMonth = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

export interface MonthView {
  readonly weeks: readonly (readonly Day[])[];
  /** Unix milliseconds. */
  readonly now: number;
  readonly windows: readonly Window[];
  /** Changes a window. Absent if the operator is not an admin. */
  readonly onWindow?: (window: Window) => void;
  /** Creates a window on a day. Absent if the operator is not an admin. */
  readonly onDay?: (from: Date) => void;
}

export function Calendar({ weeks, now, windows, onWindow, onDay: plan }: MonthView) {
  return (
    <table className="w-full table-fixed border-collapse text-sm" aria-label="Calendar">
      <thead>
        <tr>
          {weekdays.map((name) => (
            <th key={name} scope="col" className="h-8 border-b px-2 text-left font-medium text-muted text-xs">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeks.map((week) => (
          <tr key={week[0]?.from.getTime()}>
            {week.map((day) => {
              if (!day.isShown)
                return <td key={day.from.getTime()} className="border-r border-b bg-canvas last:border-r-0" />;
              const shown = onDay(windows, day);
              const isToday = now >= day.from.getTime() && now < day.until.getTime();
              return (
                <td key={day.from.getTime()} className="h-20 border-r border-b p-1 align-top last:border-r-0 sm:h-24">
                  <DayNumber day={day.from} isToday={isToday} {...(plan ? { plan } : {})} />
                  <ul className="mt-0.5 space-y-0.5">
                    {shown.slice(0, maxPerDay).map((window) => (
                      <li key={window.id}>
                        <WindowBar window={window} now={now} onWindow={onWindow} />
                      </li>
                    ))}
                  </ul>
                  {shown.length > maxPerDay && (
                    <span className="px-1 text-2xs text-muted">and {shown.length - maxPerDay} more</span>
                  )}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function DayNumber({
  day,
  isToday,
  plan,
}: {
  readonly day: Date;
  readonly isToday: boolean;
  readonly plan?: (from: Date) => void;
}) {
  const look = classNames(
    // The number starts below the name of the weekday.
    'flex h-6 min-w-6 items-center rounded-md px-1 text-xs',
    isToday && 'bg-accent font-semibold text-on-accent',
  );
  const text = day.getDate() === 1 ? firstOfMonth.format(day) : day.getDate();
  if (plan === undefined)
    return (
      <span className={look} aria-current={isToday ? 'date' : undefined}>
        {text}
      </span>
    );
  return (
    <button
      type="button"
      aria-current={isToday ? 'date' : undefined}
      aria-label={`Plan a window on ${fullDate.format(day)}`}
      title="Plan a window on this day"
      onClick={() => plan(day)}
      className={classNames(look, !isToday && 'hover:bg-hover')}
    >
      {text}
    </button>
  );
}

/** A window on one day, as a button if it can be changed. */
function WindowBar({
  window,
  now,
  onWindow,
}: {
  readonly window: Window;
  readonly now: number;
  readonly onWindow: ((window: Window) => void) | undefined;
}) {
  const shared = {
    title: `${absoluteTime(window.starts_at * 1000)} – ${absoluteTime(window.ends_at * 1000)}`,
    className: classNames(
      'flex h-5 w-full min-w-0 items-center rounded px-1 text-left text-2xs',
      stageClasses[stageOf(window, now)],
    ),
    children: <Line text={window.reason} />,
  };
  return onWindow === undefined ? (
    <span {...shared} />
  ) : (
    <button type="button" onClick={() => onWindow(window)} {...shared} />
  );
}
