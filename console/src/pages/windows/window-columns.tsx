import type { Window } from '@muster/protocol/http';
import { Dot, type Tone } from '../../parts/badge.tsx';
import { MenuItem, RowActions } from '../../parts/dialog/menu.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { RowToggle } from '../../parts/table/row-toggle.tsx';
import { Line, lineText } from '../../parts/text.tsx';
import { absoluteTime, Time } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';
import { rangeText, stageOf, type WindowStage } from './month.ts';
import type { WindowAction } from './window-action-dialog.tsx';

/** Stages in the order of the list. */
export const windowStages = ['open', 'planned', 'over'] as const satisfies readonly WindowStage[];

export const stageWords: Readonly<Record<WindowStage, string>> = { open: 'open', planned: 'planned', over: 'ended' };
const tones: Readonly<Record<WindowStage, Tone>> = { open: 'info', planned: 'neutral', over: 'neutral' };

/** @param onAction null for operators who are not admins */
export function windowColumns({
  now,
  open,
  onToggle,
  onAction,
}: {
  /** Ids of the windows whose details are shown. */
  readonly open: ReadonlySet<string>;
  readonly onToggle: (id: string) => void;
  /** Unix milliseconds. */
  readonly now: number;
  readonly onAction: ((action: WindowAction) => void) | null;
}): readonly Column<Window>[] {
  return [
    {
      id: 'reason',
      header: 'Reason',
      width: 'minmax(8rem,3fr)',
      sort: ({ reason }) => reason,
      cell: ({ id, reason }) => <RowToggle name={reason} isOpen={open.has(id)} onToggle={() => onToggle(id)} />,
    },
    {
      id: 'state',
      header: 'Status',
      width: '11rem',
      phone: 'line',
      sort: (window) => windowStages.indexOf(stageOf(window, now)),
      cell: (window) => {
        const stage = stageOf(window, now);
        return (
          <>
            <span className="flex shrink-0">
              <Dot tone={tones[stage]}>{stageWords[stage]}</Dot>
            </span>
            {stage !== 'over' && (
              <span className="ml-2 truncate text-muted max-sm:hidden">
                {stage === 'open' && 'ends '}
                <Time at={stage === 'open' ? window.ends_at : window.starts_at} />
              </span>
            )}
          </>
        );
      },
    },
    {
      id: 'time',
      header: 'Time',
      width: 'minmax(14rem,3fr)',
      phone: 'line',
      sort: ({ starts_at }) => starts_at,
      cell: (window) => (
        <span
          className="tabular truncate"
          title={`${absoluteTime(window.starts_at * 1000)} – ${absoluteTime(window.ends_at * 1000)}`}
        >
          {rangeText(window, now)}
        </span>
      ),
    },
    {
      id: 'agents',
      header: 'Agents',
      width: 'minmax(7.5rem,1fr)',
      from: 'md',
      phone: 'line',
      cell: ({ selector }) => <Agents selector={selector} />,
    },
    {
      id: 'by',
      header: 'Created by',
      width: '7rem',
      from: '2xl',
      cell: ({ created_by }) => <OperatorName id={created_by} />,
    },
    ...(onAction === null ? [] : [actionColumn(now, onAction)]),
  ];
}

function Agents({ selector }: Pick<Window, 'selector'>) {
  if (selector === null) return <span>all agents</span>;
  if (selector === '') return <span className="text-muted">no agent</span>;
  return (
    <code className="flex min-w-0 font-mono text-muted text-xs leading-6">
      <Line text={selector} />
    </code>
  );
}

const actionColumn = (now: number, onAction: (action: WindowAction) => void): Column<Window> => ({
  id: 'actions',
  header: 'Actions',
  width: '4.5rem',
  phone: 'end',
  align: 'right',
  cell: (window) => {
    const stage = stageOf(window, now);
    return (
      <RowActions on={lineText(window.reason, 80)}>
        {stage !== 'over' && <MenuItem onSelect={() => onAction({ kind: 'edit', window, from: null })}>Edit…</MenuItem>}
        {stage === 'open' && <MenuItem onSelect={() => onAction({ kind: 'end', window })}>End now…</MenuItem>}
        <MenuItem danger onSelect={() => onAction({ kind: 'remove', window })}>
          Remove…
        </MenuItem>
      </RowActions>
    );
  },
});
