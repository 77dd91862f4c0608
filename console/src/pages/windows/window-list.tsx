import type { Window } from '@muster/protocol/http';
import { CalendarClock, Plus } from 'lucide-react';
import { useCallback, useMemo } from 'react';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Button } from '../../parts/button.tsx';
import { Empty } from '../../parts/states.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { type ListQuery, ListTable } from '../../parts/table/list-table.tsx';
import { useOpenRows } from '../../parts/table/row-toggle.tsx';
import { stageOf } from './month.ts';
import type { WindowAction } from './window-action-dialog.tsx';
import { stageWords, windowColumns, windowStages } from './window-columns.tsx';
import { WindowDetails } from './window-details.tsx';

const filters = [
  { name: 'q', label: 'Search windows', placeholder: 'Search windows' },
  {
    ...{ name: 'state', label: 'Status', any: 'Any status' },
    options: windowStages.map((each) => ({ value: each, label: stageWords[each] })),
  },
] as const;

/** Open, planned, and past maintenance windows. Admins can change them. */
export function WindowList({
  query,
  windows,
  now,
  onAction,
}: {
  readonly query: ListQuery;
  /** Undefined while loading. */
  readonly windows: readonly Window[] | undefined;
  readonly now: number;
  readonly onAction: (action: WindowAction) => void;
}) {
  const isAdmin = useIsAdmin();
  const listed = useMemo(() => windows && sortForList(windows, now), [windows, now]);
  const matches = useCallback(
    (window: Window, { q, state }: FilterTexts) =>
      containsText(q, window.reason, window.selector) && (state === '' || stageOf(window, now) === state),
    [now],
  );
  const { open, toggle } = useOpenRows();
  const columns = windowColumns({ now, open, onToggle: toggle, onAction: isAdmin ? onAction : null });
  const edit = (window: Window | null) => onAction({ kind: 'edit', window, from: null });
  return (
    <ListTable
      label="Maintenance windows"
      query={query}
      rows={listed}
      filters={filters}
      matches={matches}
      sortedBy="state"
      columns={columns}
      rowKey={({ id }) => id}
      rowLabel={({ reason }) => reason}
      onOpen={({ id }) => toggle(id)}
      details={(window) => (open.has(window.id) ? <WindowDetails window={window} /> : null)}
      noMatch="No matching windows"
      empty={
        <Empty
          title="No maintenance windows"
          icon={<CalendarClock />}
          action={
            isAdmin && (
              <Button icon={<Plus className="size-4" />} onClick={() => edit(null)}>
                New window
              </Button>
            )
          }
        >
          A window mutes notifications about its agents while you work on them.
        </Empty>
      }
    />
  );
}

/** Sorts windows: first open and planned ones, soonest first, then past ones, latest first. */
function sortForList(windows: readonly Window[], now: number): Window[] {
  const over = (window: Window) => stageOf(window, now) === 'over';
  return windows.toSorted((a, b) => {
    if (over(a) !== over(b)) return over(a) ? 1 : -1;
    return over(a) ? b.ends_at - a.ends_at : a.starts_at - b.starts_at;
  });
}
