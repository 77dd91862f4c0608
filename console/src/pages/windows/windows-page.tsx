import type { Window } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { CalendarClock, ChevronLeft, ChevronRight, Plus } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { changeWindow, deleteWindow, windowsQuery } from '../../api/windows.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Button, IconButton } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { absoluteTime, momentNow, Time, useNow } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { Calendar } from './calendar.tsx';
import { monthOf, monthText, rangeText, stageOf, type WindowStage } from './month.ts';
import { WindowForm, type WindowFormTarget } from './window-form.tsx';

const stages: Readonly<Record<WindowStage, { tone: Tone; label: string }>> = {
  open: { tone: 'warn', label: 'open' },
  planned: { tone: 'info', label: 'planned' },
  over: { tone: 'neutral', label: 'ended' },
};

export function WindowsPage() {
  const { data, error, refetch } = useQuery(windowsQuery);
  const isAdmin = useIsAdmin();
  const now = useNow();
  const today = new Date(now);
  const [monthName, setMonth] = useUrlState('month', '');
  const { year, month } = monthOf(monthName) ?? { year: today.getFullYear(), month: today.getMonth() };
  const [form, setForm] = useState<WindowFormTarget | null>(null);
  const [ending, setEnding] = useState<Window | null>(null);
  const [removing, setRemoving] = useState<Window | null>(null);
  const listed = useMemo(() => sortForList(data ?? [], now), [data, now]);
  const planOne = () => setForm({ window: null, from: null });
  const go = (later: number) => setMonth(monthText(year, month, later));

  return (
    <Page
      title="Maintenance windows"
      subtitle={`An open window mutes notifications about its agents and allows assignments that are restricted to windows.${isAdmin ? '' : ' Only admins can create them.'}`}
      actions={
        isAdmin && (
          <Button look="primary" icon={<Plus className="size-4" />} onClick={planOne}>
            New window
          </Button>
        )
      }
    >
      {error ? (
        <Panel>
          <Failure error={error} retry={() => void refetch()} />
        </Panel>
      ) : (
        <div className="grid gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <Panel
            flush
            title={new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric' }).format(
              new Date(year, month, 1),
            )}
            actions={
              <>
                <IconButton
                  small
                  label="Previous month"
                  icon={<ChevronLeft className="size-4" />}
                  onClick={() => go(-1)}
                />
                <Button small onClick={() => setMonth('')}>
                  Today
                </Button>
                <IconButton small label="Next month" icon={<ChevronRight className="size-4" />} onClick={() => go(1)} />
              </>
            }
          >
            <Calendar
              year={year}
              month={month}
              now={now}
              windows={data ?? []}
              onWindow={(window) => isAdmin && setForm({ window, from: null })}
              {...(isAdmin ? { onDay: (from: Date) => setForm({ window: null, from }) } : {})}
            />
          </Panel>
          <Panel title="Planned and past" flush>
            {data === undefined ? (
              <SkeletonRows />
            ) : listed.length === 0 ? (
              <Empty
                title="No maintenance windows"
                icon={<CalendarClock className="size-7" strokeWidth={1.4} />}
                action={isAdmin && <Button onClick={planOne}>New window</Button>}
              >
                Plan a window before maintenance to mute notifications.
              </Empty>
            ) : (
              <ul className="max-h-[36rem] divide-y overflow-y-auto" aria-label="Maintenance windows">
                {listed.map((window) => (
                  <Entry
                    key={window.id}
                    window={window}
                    stage={stageOf(window, now)}
                    isAdmin={isAdmin}
                    onEdit={() => setForm({ window, from: null })}
                    onEnd={() => setEnding(window)}
                    onRemove={() => setRemoving(window)}
                  />
                ))}
              </ul>
            )}
          </Panel>
        </div>
      )}
      {form !== null && <WindowForm target={form} now={now} onClose={() => setForm(null)} />}
      <Confirm
        open={ending !== null}
        onOpenChange={() => setEnding(null)}
        title="End this window now?"
        action="End window"
        danger={false}
        onConfirm={async () => {
          await changeWindow(ending?.id ?? '', { ends_at: Math.floor(momentNow() / 1000) });
          notify('Maintenance window ended');
        }}
      >
        Notifications about its agents resume. Muted notifications are not sent later.
      </Confirm>
      <Confirm
        open={removing !== null}
        onOpenChange={() => setRemoving(null)}
        title="Remove this window?"
        action="Remove window"
        onConfirm={async () => {
          await deleteWindow(removing?.id ?? '');
          notify('Maintenance window removed');
        }}
      >
        <Text text={removing?.reason ?? ''} />. If it is open, it ends now.
      </Confirm>
    </Page>
  );
}

/** Open and planned windows first, soonest first; then ended ones, latest first. */
function sortForList(windows: readonly Window[], now: number): Window[] {
  const over = (window: Window) => stageOf(window, now) === 'over';
  return windows.toSorted((a, b) => {
    if (over(a) !== over(b)) return over(a) ? 1 : -1;
    return over(a) ? b.ends_at - a.ends_at : a.starts_at - b.starts_at;
  });
}

function Entry({
  window,
  stage,
  isAdmin,
  onEdit,
  onEnd,
  onRemove,
}: {
  readonly window: Window;
  readonly stage: WindowStage;
  readonly isAdmin: boolean;
  readonly onEdit: () => void;
  readonly onEnd: () => void;
  readonly onRemove: () => void;
}) {
  const names = useOperatorNames();
  const { tone, label } = stages[stage];
  return (
    <li className="space-y-1 px-4 py-3">
      <div className="flex items-start gap-2">
        <p className="min-w-0 flex-1 font-medium text-sm">
          <Text text={window.reason} />
        </p>
        <Badge tone={tone}>{label}</Badge>
      </div>
      <p className="text-muted text-xs">
        <span title={`${absoluteTime(window.starts_at * 1000)} – ${absoluteTime(window.ends_at * 1000)}`}>
          {rangeText(window)}
        </span>
        {stage !== 'over' && (
          <>
            {' '}
            ({stage === 'open' ? 'ends ' : 'starts '}
            <Time at={stage === 'open' ? window.ends_at : window.starts_at} />)
          </>
        )}
      </p>
      <p className="flex min-w-0 items-center gap-1 text-muted text-xs">
        {window.selector === null ? (
          'all agents'
        ) : window.selector === '' ? (
          'no agent'
        ) : (
          <code className="truncate font-mono">
            <Line text={window.selector} />
          </code>
        )}
        <span>· by {names.get(window.created_by) ?? window.created_by}</span>
      </p>
      {isAdmin && (
        <div className="flex gap-1 pt-1">
          {stage !== 'over' && (
            <Button small onClick={onEdit}>
              Change
            </Button>
          )}
          {stage === 'open' && (
            <Button small onClick={onEnd}>
              End now
            </Button>
          )}
          <Button small look="danger" onClick={onRemove}>
            Remove
          </Button>
        </div>
      )}
    </li>
  );
}
