import type { Window } from '@muster/protocol/http';
import { CalendarClock, Ellipsis } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Button, IconButton } from '../../parts/button.tsx';
import { countText } from '../../parts/count.ts';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { Empty, SkeletonRows } from '../../parts/states.tsx';
import { Line, lineText, Text } from '../../parts/text.tsx';
import { absoluteTime, Time } from '../../parts/time.tsx';
import { rangeText, stageOf, type WindowStage } from './month.ts';
import type { WindowAction } from './window-action-dialog.tsx';

const stages: Readonly<Record<WindowStage, { tone: Tone; label: string }>> = {
  open: { tone: 'info', label: 'open' },
  planned: { tone: 'neutral', label: 'planned' },
  over: { tone: 'neutral', label: 'ended' },
};

/** Number of past windows to show by default. */
const maxEnded = 3;

/** Planned and past maintenance windows. Admins can change them. */
export function WindowList({
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
  const listed = useMemo(() => sortForList(windows ?? [], now), [windows, now]);
  const [showsAll, setShowsAll] = useState(false);
  const ended = listed.filter((window) => stageOf(window, now) === 'over').length;
  const shown = showsAll ? listed : listed.slice(0, listed.length - Math.max(0, ended - maxEnded));
  if (windows === undefined) return <SkeletonRows />;
  if (listed.length === 0)
    return (
      <Empty
        title="No maintenance windows"
        icon={<CalendarClock className="size-7" strokeWidth={1.4} />}
        action={
          isAdmin && <Button onClick={() => onAction({ kind: 'edit', window: null, from: null })}>New window</Button>
        }
      >
        Plan a window before maintenance to mute notifications.
      </Empty>
    );
  return (
    <>
      <ul className="divide-y" aria-label="Maintenance windows">
        {shown.map((window) => (
          <Entry key={window.id} {...{ window, now, onAction }} />
        ))}
      </ul>
      {shown.length < listed.length && (
        <div className="border-t p-3 text-center">
          <Button small onClick={() => setShowsAll(true)}>
            Show all {countText(ended)} past windows
          </Button>
        </div>
      )}
    </>
  );
}

/** Open and planned windows come first, soonest first, then past ones, latest first. */
function sortForList(windows: readonly Window[], now: number): Window[] {
  const over = (window: Window) => stageOf(window, now) === 'over';
  return windows.toSorted((a, b) => {
    if (over(a) !== over(b)) return over(a) ? 1 : -1;
    return over(a) ? b.ends_at - a.ends_at : a.starts_at - b.starts_at;
  });
}

function Actions({
  window,
  stage,
  onAction,
}: {
  readonly window: Window;
  readonly stage: WindowStage;
  readonly onAction: (action: WindowAction) => void;
}) {
  const label = `Actions on ${lineText(window.reason, 80)}`;
  return (
    <Menu
      trigger={
        <IconButton small label={label} className="-my-1" icon={<Ellipsis aria-hidden="true" className="size-4" />} />
      }
    >
      {stage !== 'over' && <MenuItem onSelect={() => onAction({ kind: 'edit', window, from: null })}>Edit…</MenuItem>}
      {stage === 'open' && <MenuItem onSelect={() => onAction({ kind: 'end', window })}>End now…</MenuItem>}
      <MenuItem danger onSelect={() => onAction({ kind: 'remove', window })}>
        Remove…
      </MenuItem>
    </Menu>
  );
}

function Entry({
  window,
  now,
  onAction,
}: {
  readonly window: Window;
  readonly now: number;
  readonly onAction: (action: WindowAction) => void;
}) {
  const isAdmin = useIsAdmin();
  const stage = stageOf(window, now);
  const names = useOperatorNames();
  const { tone, label } = stages[stage];
  return (
    <li className="space-y-1 px-4 py-3">
      <div className="flex items-start gap-2">
        <p className="min-w-0 flex-1 font-medium text-sm">
          <Text text={window.reason} />
        </p>
        <Badge tone={tone}>{label}</Badge>
        {isAdmin && <Actions {...{ window, stage, onAction }} />}
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
    </li>
  );
}
